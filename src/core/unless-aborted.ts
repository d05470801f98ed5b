/**
 * What comes of a promise; once the signal aborts, it is waited for no longer. A signal that has aborted
 * before is not heard.
 * @param errorOf what is thrown then; by default the signal's reason
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
