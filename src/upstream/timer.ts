/** Runs `run` once after `ms`, clamped to 0 to 2^31 - 1. @returns a function that cancels it */
export function startTimer(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, Math.min(Math.max(ms, 0), maxTimerMs));
  return () => clearTimeout(timer);
}

/** Node fires a longer timer at once. */
const maxTimerMs = 2 ** 31 - 1;
