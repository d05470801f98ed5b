import { StoreTimeout } from "../errors.ts";

/** Runs `run` once after `ms`, clamped to 0 to 2^31 - 1. @returns a function that cancels it */
export function startTimer(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, Math.min(Math.max(ms, 0), maxTimerMs));
  return () => clearTimeout(timer);
}

/** Longest delay of a Node timer, in milliseconds: a timer with a longer one fires at once. */
export const maxTimerMs = 2 ** 31 - 1;

/**
 * Rejects with StoreTimeout after `ms`: a stalled store never answers. If this process itself was
 * blocked meanwhile, it waits once more for as long as it was blocked, at most `ms`.
 */
export function within<T>(ms: number, answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const dueMs = performance.now() + ms;
    // First read an answer that arrived while this process was busy.
    const late = () => setImmediate(() => reject(new StoreTimeout(ms)));
    const due = () => {
      const stoodStillMs = performance.now() - dueMs;
      if (stoodStillMs < stallMs) late();
      else timer = setTimeout(late, Math.min(stoodStillMs, ms));
    };
    let timer = setTimeout(due, ms);
    const ended = (settle: (outcome: T) => void) => (outcome: T) => {
      clearTimeout(timer);
      settle(outcome);
    };
    answer.then(ended(resolve), ended(reject));
  });
}

/** A timer that is late by this much means that the process was blocked, in milliseconds. */
const stallMs = 50;

/**
 * Looks again and again until it is closed. `found` hears of each result, and returns the pause before
 * the next look, in milliseconds.
 * @param look must not reject
 */
export function repeat<Found>(
  look: () => Promise<Found>,
  found: (result: Found) => number,
  firstMs = 0,
): { close(): void } {
  let closed = false;
  let timer = setTimeout(run, firstMs).unref();
  async function run(): Promise<void> {
    const result = await look();
    if (!closed) timer = setTimeout(run, found(result)).unref();
  }
  return {
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}
