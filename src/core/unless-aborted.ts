/**
 * Waits for a promise until the signal aborts. A signal that has aborted before has no effect.
 * @param errorOf what to throw on abort. Default: the signal's reason
 */
export function unlessAborted<Result>(
  awaited: Promise<Result>,
  signal: AbortSignal,
  errorOf: () => unknown = () => signal.reason,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(errorOf());
    signal.addEventListener("abort", onAbort, { once: true });
    const done = () => signal.removeEventListener("abort", onAbort);
    awaited.then(resolve, reject).finally(done);
  });
}
