/** Time as the bucket sees it, so that tests can run it on virtual time. All values are milliseconds. */
export interface Clock {
  /** Monotonic time from an arbitrary start; every interval is measured on it. */
  now(): number;
  /** Wall-clock time since the epoch; only callers' deadlines are read against it. */
  epoch(): number;
  /** Runs `run` once, `ms` from now; the returned function cancels that. */
  after(ms: number, run: () => void): () => void;
}

/** The machine's clocks. Its timers never keep the process alive. */
export const systemClock: Clock = {
  now: () => performance.now(),
  epoch: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};
