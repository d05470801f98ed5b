/** Runs `run` once after `ms`, clamped to 0 to 2^31 - 1. @returns a function that cancels it */
export function startTimer(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, Math.min(Math.max(ms, 0), maxTimerMs));
  return () => clearTimeout(timer);
}

/** Longest delay of a Node timer, in milliseconds: a timer with a longer one fires at once. */
export const maxTimerMs = 2 ** 31 - 1;
