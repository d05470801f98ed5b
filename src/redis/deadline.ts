/** Thrown when Redis did not answer in time. What was asked for may have happened all the same. */
export class RedisTimeout extends Error {
  override readonly name = "RedisTimeout";
  constructor(ms: number) {
    super(`Redis did not answer within ${ms} ms`);
  }
}

/** No await on Redis is without an end: a stalled server answers nothing at all. */
export function within<T>(ms: number, answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    // An answer that came while this process was busy is read before the timer's verdict counts.
    const late = () => setImmediate(() => reject(new RedisTimeout(ms)));
    const timer = setTimeout(late, ms);
    answer.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
