import { parentPort, Worker } from "node:worker_threads";

interface Threads<Done> {
  readonly threads: number;
  readonly workerData?: unknown;
  readonly onDone?: ((done: Done) => void) | undefined;
  /** Gives no more tasks once it aborts. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Has tasks done in threads of a program that calls `doTasks`, each thread one at a time: nothing slows
 * them down there, such as a test runner that tracks each promise.
 */
export async function inThreads<Task, Done>(
  program: string,
  tasks: readonly Task[],
  { threads, workerData, onDone, signal }: Threads<Done>,
): Promise<Done[]> {
  const all: Done[] = [];
  const left = [...tasks];
  const thread = () =>
    new Promise<void>((resolve, reject) => {
      const resourceLimits = { maxYoungGenerationSizeMb: 128, maxOldGenerationSizeMb: 4_096 };
      const worker = new Worker(new URL(program), { workerData, resourceLimits });
      const give = () => worker.postMessage((!signal?.aborted && left.shift()) || null);
      worker.on("message", (done: Done) => {
        all.push(done);
        onDone?.(done);
        give();
      });
      worker.once("error", reject).once("exit", () => resolve());
      give();
    });
  await Promise.all(Array.from({ length: threads }, thread));
  return all;
}

/** In such a thread: does the tasks that it is given. `over` runs after the last one. */
export function doTasks<Task, Done>(
  work: (task: Task) => Done | Promise<Done>,
  over = async () => {},
): void {
  parentPort?.on("message", async (task: Task | null) => {
    if (task !== null) return parentPort?.postMessage(await work(task));
    await over();
    process.exit();
  });
}
