/** Thrown when Redis did not answer in time. What was asked for may have happened all the same. */
export class RedisTimeout extends Error {
  override readonly name = "RedisTimeout";
  constructor(ms: number) {
    super(`Redis did not answer within ${ms} ms`);
  }
}

/**
 * No await on Redis is without an end: a stalled server answers nothing at all. What this process
 * stood still for meanwhile is not Redis's fault: as much is waited once more, `ms` at most.
 */
export function within<T>(ms: number, answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const dueMs = performance.now() + ms;
    // An answer that came while this process was busy is read before the timer's verdict counts.
    const late = () => setImmediate(() => reject(new RedisTimeout(ms)));
    const due = () => {
      const stoodStillMs = performance.now() - dueMs;
      if (stoodStillMs < stallMs) late();
      else timer = setTimeout(late, Math.min(stoodStillMs, ms));
    };
    let timer = setTimeout(due, ms);
    answer.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}

/** A timer that is this late means that the process stood still. */
const stallMs = 50;
