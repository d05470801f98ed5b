/** Runs once after `ms`, which may be negative or beyond what a timer holds. @returns its stop. */
export function startTimer(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, Math.min(Math.max(ms, 0), maxTimerMs));
  return () => clearTimeout(timer);
}

/** Node fires a longer timer at once. */
const maxTimerMs = 2 ** 31 - 1;
