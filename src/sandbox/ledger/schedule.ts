import type { SandboxClock } from "../clock.ts";

/** Everything that the sandbox does on its own, so that it can be waited for and ended. */
export interface Schedule {
  /** Aborts when the sandbox closes. */
  readonly closing: AbortSignal;
  /** Does something later, unless the sandbox closes first. */
  after(ms: number, task: () => void): void;
  /** Does something that takes its time; errors after closing are of no interest. */
  run(task: () => Promise<void>): void;
  /** Resolves after the time or, sooner, when `wake` aborts. @throws when the sandbox closes. */
  sleep(ms: number, wake?: AbortSignal): Promise<void>;
  /** Resolves when nothing is under way or planned. */
  idle(): Promise<void>;
  /** Ends all of it. */
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
