export interface RingOptions<Slot> {
  /** Length of one step, in milliseconds. */
  readonly stepMs: number;
  /** How many steps are kept, the present one among them. */
  readonly length: number;
  readonly create: () => Slot;
  /** Wall clock in milliseconds. */
  readonly now: () => number;
}

/** What happened lately, in steps of time; what is older is forgotten. Its size is bounded. */
export class Ring<Slot> {
  readonly #options: RingOptions<Slot>;
  readonly #slots: ({ readonly step: number; readonly slot: Slot } | undefined)[];

  constructor(options: RingOptions<Slot>) {
    this.#options = options;
    this.#slots = new Array(options.length).fill(undefined);
  }

  /** The slot of the present step. */
  get current(): Slot {
    const step = this.#step;
    const held = this.#slots[step % this.#options.length];
    if (held?.step === step) return held.slot;
    const slot = this.#options.create();
    this.#slots[step % this.#options.length] = { step, slot };
    return slot;
  }

  /** The last `count` steps, the present one last; undefined where nothing happened. */
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
