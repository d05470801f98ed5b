import assert from "node:assert/strict";
import type { Clock } from "../../src/ratelimit/clock.ts";

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

/** A clock that only `run` moves; the epoch is its start. */
export class VirtualClock implements Clock {
  #now = 0;
  #order = 0;
  #timers: Timer[] = [];
  readonly #work = new Set<Promise<unknown>>();
  #last: Promise<unknown> = Promise.resolve();

  now(): number {
    return this.#now;
  }

  epoch(): number {
    return this.#now;
  }

  get pendingTimers(): number {
    return this.#timers.length;
  }

  after(ms: number, run: () => void): () => void {
    const timer = { at: this.#now + ms, order: this.#order++, run };
    let at = this.#timers.length;
    while (at > 0 && this.#timers[at - 1]!.at > timer.at) at--;
    this.#timers.splice(at, 0, timer);
    return () => {
      const index = this.#timers.indexOf(timer);
      if (index >= 0) this.#timers.splice(index, 1);
    };
  }

  /**
   * Stops the clock during real work, such as another process's. Works run one after another, so
   * that chance does not decide which of two ends first.
   */
  async holdFor<T>(work: () => Promise<T>): Promise<T> {
    const before = this.#last;
    const { promise: over, resolve: end } = Promise.withResolvers<void>();
    this.#last = over;
    this.#work.add(over);
    try {
      await before;
      return await work();
    } finally {
      end();
      this.#work.delete(over);
    }
  }

  /** Runs all timers due within `ms`, in order, and after each one the promises that it settles. */
  async run(ms: number): Promise<void> {
    const until = this.#now + ms;
    await this.#settled();
    for (let next = this.#timers[0]; next && next.at <= until; next = this.#timers[0]) {
      this.#timers.shift();
      this.#now = next.at;
      next.run();
      await this.#settled();
    }
    this.#now = until;
  }

  /** Runs until the result is there; it may be later than it by what was due at the same time. */
  async runUntil<T>(result: Promise<T>): Promise<T> {
    let isThere = false;
    const there = () => {
      isThere = true;
    };
    result.then(there, there);
    await this.run(0);
    for (const endsAt = this.#now + longestMs; !isThere; ) {
      const [next] = this.#timers;
      assert.ok(next && next.at < endsAt, "nothing is due that could settle it");
      await this.run(next.at - this.#now);
    }
    return await result;
  }

  async #settled(): Promise<void> {
    await settled();
    while (this.#work.size > 0) {
      await Promise.allSettled(this.#work);
      await settled();
    }
  }
}

/** Longest virtual time that is waited for one result. */
const longestMs = 600_000;

/** Resolves when every promise that can settle without a timer has done so. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
