/** Time in one run of the sandbox. A test can move it on; it never goes back. */
export interface SandboxClock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after this time, in milliseconds, or as soon as the signal aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** Moves on by this time, in milliseconds: who sleeps until then wakes, the earliest first. */
  advance(ms: number): void;
}

export function createClock(): SandboxClock {
  let movedMs = 0;
  const sleepers = new Set<Sleeper>();
  /** Timers do not notice when the machine's clock is put right. */
  const steady = () => performance.now() + movedMs;

  function arm(sleeper: Sleeper): void {
    clearTimeout(sleeper.timer);
    const leftMs = sleeper.untilMs - steady();
    if (leftMs <= 0) sleeper.wake();
    else sleeper.timer = setTimeout(() => arm(sleeper), Math.min(leftMs, maxTimerMs));
  }

  return {
    now: () => Date.now() + movedMs,
    sleep(ms, signal) {
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
      // Never at once: who was called first goes on first.
      sleeper.timer = setTimeout(() => arm(sleeper), Math.min(ms, maxTimerMs));
      return promise;
    },
    advance(ms) {
      movedMs += ms;
      for (const sleeper of [...sleepers].sort((a, b) => a.untilMs - b.untilMs)) arm(sleeper);
    },
  };
}

interface Sleeper {
  readonly untilMs: number;
  timer: NodeJS.Timeout | undefined;
  wake(): void;
}

/** A timer waits no longer than 2^31 - 1 ms. */
const maxTimerMs = 2 ** 31 - 1;
