let ended: Promise<void> | undefined;

/**
 * Resolves at the end of this turn of the event loop, for all waiting calls at once. Their writes
 * then leave together, so that a peer wakes up once instead of once for each write.
 */
export function turnEnd(): Promise<void> {
  ended ??= new Promise((resolve) => {
    setImmediate(() => {
      ended = undefined;
      resolve();
    });
  });
  return ended;
}
