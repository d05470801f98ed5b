import { systemClock } from "./clock.ts";

/** One timer for whatever is due first. It never keeps the process alive. */
export class Alarm {
  readonly #ring: () => void;
  #at = Infinity;
  #cancel: (() => void) | undefined;

  constructor(ring: () => void) {
    this.#ring = ring;
  }

  /** Rings once at this time of the monotonic clock, and no more at the one set before; Infinity is never. */
  set(at: number, now: number): void {
    if (at === this.#at) return;
    this.#cancel?.();
    this.#cancel = undefined;
    this.#at = at;
    if (at === Infinity) return;
    this.#cancel = systemClock.after(Math.max(1, Math.ceil(at - now)), () => {
      this.#at = Infinity;
      this.#ring();
    });
  }
}
