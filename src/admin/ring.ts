export interface RingOptions<Slot> {
  /** Length of one step, in milliseconds. */
  readonly stepMs: number;
  /** Number of steps that are kept, including the current one. */
  readonly length: number;
  readonly create: () => Slot;
  /** Wall clock in milliseconds. */
  readonly now: () => number;
}

/** One slot for each recent step of time; older slots are dropped. Its size is bounded. */
export class Ring<Slot> {
  readonly #options: RingOptions<Slot>;
  readonly #slots: ({ readonly step: number; readonly slot: Slot } | undefined)[];

  constructor(options: RingOptions<Slot>) {
    this.#options = options;
    this.#slots = new Array(options.length).fill(undefined);
  }

  /** The slot of the current step. */
  get current(): Slot {
    const step = this.#step;
    const held = this.#slots[step % this.#options.length];
    if (held?.step === step) return held.slot;
    const slot = this.#options.create();
    this.#slots[step % this.#options.length] = { step, slot };
    return slot;
  }

  /** Slots of the last `count` steps, the current one last; undefined for steps without a slot. */
  last(count: number): (Slot | undefined)[] {
    const { length } = this.#options;
    const shown = Math.min(count, length);
    const first = this.#step - shown + 1;
    return Array.from({ length: shown }, (_, at) => {
      const held = this.#slots[(first + at) % length];
      return held?.step === first + at ? held.slot : undefined;
    });
  }

  get #step(): number {
    return Math.floor(this.#options.now() / this.#options.stepMs);
  }
}
