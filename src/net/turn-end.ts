let ended: Promise<void> | undefined;

/**
 * Resolves at the end of this turn of the event loop, for all who wait for it at once. What they write
 * then leaves together: peers that each write alone would wake from their sleep are woken once.
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
