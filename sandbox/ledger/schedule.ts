import type { SandboxClock } from "../clock.ts";

/** Runs the sandbox's background work, so that others can wait for it and end it. */
export interface Schedule {
  /** Aborts when the sandbox closes. */
  readonly closing: AbortSignal;
  /** Runs the task after `ms` milliseconds, unless the sandbox closes first. */
  after(ms: number, task: () => void): void;
  /** Runs an asynchronous task. Its errors are reported, except after closing. */
  run(task: () => Promise<void>): void;
  /** Resolves after `ms` milliseconds, or when `wake` aborts. @throws when the sandbox closes. */
  sleep(ms: number, wake?: AbortSignal): Promise<void>;
  /** Resolves when no work is running or scheduled. */
  idle(): Promise<void>;
  /** Ends all work and waits for its end. */
  close(): Promise<void>;
}

export function createSchedule(clock: SandboxClock, onError: (error: unknown) => void): Schedule {
  const controller = new AbortController();
  const closing = controller.signal;
  const underWay = new Set<Promise<void>>();

  function run(task: () => Promise<void>): void {
    const promise = task()
      .catch((error: unknown) => {
        if (!closing.aborted) onError(error);
      })
      .finally(() => underWay.delete(promise));
    underWay.add(promise);
  }

  async function sleep(ms: number, wake?: AbortSignal): Promise<void> {
    const signal = wake ? AbortSignal.any([closing, wake]) : closing;
    await clock.sleep(ms, signal);
    closing.throwIfAborted();
  }

  async function idle(): Promise<void> {
    while (underWay.size > 0) await Promise.all(underWay);
  }

  return {
    closing,
    run,
    sleep,
    idle,
    after(ms, task) {
      run(async () => {
        await sleep(ms);
        task();
      });
    },
    async close() {
      controller.abort();
      await idle();
    },
  };
}
