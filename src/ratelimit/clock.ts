/** The bucket's clocks, which tests replace by virtual time. All values are milliseconds. */
export interface Clock {
  /** Monotonic time from an arbitrary start; every interval is measured on it. */
  now(): number;
  /** Wall-clock time since the epoch; only callers' deadlines are read against it. */
  epoch(): number;
  /** Runs `run` once, `ms` from now; the returned function cancels that. */
  after(ms: number, run: () => void): () => void;
}

/** The machine's clocks. Its timers never keep the process alive. */
export const systemClock: Clock = {
  now: () => performance.now(),
  epoch: () => Date.now(),
  after(ms, run) {
    // A timer with a longer delay fires at once.
    const timer = setTimeout(run, Math.min(ms, 2 ** 31 - 1));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** A single timer, set to whatever is due first. */
export class Alarm {
  readonly #clock: Clock;
  readonly #ring: () => void;
  #at = Infinity;
  #cancel: (() => void) | undefined;
  #ringsSoon = false;

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /** Rings once for all that happens in this turn. */
  soon(): void {
    if (this.#ringsSoon) return;
    this.#ringsSoon = true;
    queueMicrotask(() => {
      this.#ringsSoon = false;
      this.#ring();
    });
  }

  /** Sets the one time, on the monotonic clock, at which the alarm rings once; Infinity: never. */
  set(at: number, now: number): void {
    if (at === this.#at) return;
    this.#cancel?.();
    this.#cancel = undefined;
    this.#at = at;
    if (at === Infinity) return;
    this.#cancel = this.#clock.after(Math.max(1, Math.ceil(at - now)), () => {
      this.#at = Infinity;
      this.#ring();
    });
  }
}
