import type { SandboxClock } from "../clock.ts";

export type Schedule = ReturnType<typeof createSchedule>;

/** Runs the sandbox's background work, so that others can wait for it and end it. */
export function createSchedule(clock: SandboxClock, onError: (error: unknown) => void) {
  const controller = new AbortController();
  const closing = controller.signal;
  const underWay = new Set<Promise<void>>();

  /** Runs an asynchronous task. Its errors are reported, except after closing. */
  function run(task: () => Promise<void>): void {
    const promise = task()
      .catch((error: unknown) => {
        if (!closing.aborted) onError(error);
      })
      .finally(() => underWay.delete(promise));
    underWay.add(promise);
  }

  /** Resolves after `ms` milliseconds, or when `wake` aborts. @throws when the sandbox closes. */
  async function sleep(ms: number, wake?: AbortSignal): Promise<void> {
    const signal = wake ? AbortSignal.any([closing, wake]) : closing;
    await clock.sleep(ms, signal);
    closing.throwIfAborted();
  }

  /** Resolves when no work is running or scheduled. */
  async function idle(): Promise<void> {
    while (underWay.size > 0) await Promise.all(underWay);
  }

  return {
    /** Aborts when the sandbox closes. */
    closing,
    run,
    sleep,
    idle,
    /** Runs the task after `ms` milliseconds, unless the sandbox closes first. */
    after(ms: number, task: () => void): void {
      run(async () => {
        await sleep(ms);
        task();
      });
    },
    /** Ends all work and waits for its end. */
    async close(): Promise<void> {
      controller.abort();
      await idle();
    },
  };
}
