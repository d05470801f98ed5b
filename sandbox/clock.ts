export type SandboxClock = ReturnType<typeof createClock>;

/**
 * The clock of one run of the sandbox. A test can move it forward; it never goes back.
 * @param movedMs how far it was moved before
 * @param onMoved called with how far it has been moved in all
 */
export function createClock(movedMs: number, onMoved: (movedMs: number) => void) {
  const sleepers = new Set<Sleeper>();
  /** Monotonic time for sleeps: unaffected when the machine's clock is corrected. */
  const steady = () => performance.now() + movedMs;

  function arm(sleeper: Sleeper): void {
    clearTimeout(sleeper.timer);
    const leftMs = sleeper.untilMs - steady();
    if (leftMs <= 0) sleeper.wake();
    else sleeper.timer = setTimeout(() => arm(sleeper), Math.min(leftMs, maxTimerMs));
  }

  return {
    /** Milliseconds since the epoch. */
    now: () => Date.now() + movedMs,
    /** Resolves after this time, in milliseconds, or as soon as the signal aborts. */
    sleep(ms: number, signal: AbortSignal): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>();
      const sleeper: Sleeper = {
        untilMs: steady() + ms,
        timer: undefined,
        wake() {
          clearTimeout(sleeper.timer);
          sleepers.delete(sleeper);
          signal.removeEventListener("abort", sleeper.wake);
          resolve();
        },
      };
      if (signal.aborted) return Promise.resolve();
      signal.addEventListener("abort", sleeper.wake, { once: true });
      sleepers.add(sleeper);
      // Always through a timer, even for 0 ms, so that sleeps resolve in the order of the calls.
      sleeper.timer = setTimeout(() => arm(sleeper), Math.min(ms, maxTimerMs));
      return promise;
    },
    /** Moves the clock forward by `ms`. Sleeps that are due by then resolve, the earliest first. */
    advance(ms: number): void {
      movedMs += ms;
      onMoved(movedMs);
      for (const sleeper of [...sleepers].sort((a, b) => a.untilMs - b.untilMs)) arm(sleeper);
    },
  };
}

interface Sleeper {
  readonly untilMs: number;
  timer: NodeJS.Timeout | undefined;
  wake(): void;
}

/** Longest delay of a Node timer. */
const maxTimerMs = 2 ** 31 - 1;
