/** Time as the bucket sees it, so that tests can run it on virtual time. All values are milliseconds. */
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
    const timer = setTimeout(run, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** One timer for whatever is due first. */
export class Alarm {
  readonly #clock: Clock;
  readonly #ring: () => void;
  #at = Infinity;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /** Rings once at this time of the monotonic clock, and no more at the one set before; Infinity is never. */
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
