import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import { storeAway } from "../../redis/ask.ts";
import { reasonOf, StoreRefused } from "./errors.ts";
import type { Opened, Reply, Request, ThreadData } from "./worker.ts";

export interface StoreThreadOptions {
  readonly directory: string;
  /** Called with the reason when the store fails, and with undefined when it works again. */
  readonly onStateChange?: (trouble: string | undefined) => void;
  /** Default: FULL. OFF is for tests that show what FULL protects from. */
  readonly synchronous?: "FULL" | "OFF";
  /** Starts the thread. Default: a `Worker` that runs thread.ts. */
  readonly startWorker?: (data: ThreadData) => Worker;
}

/** @throws StoreRefused when the directory cannot be used. */
export async function openStoreThread(options: StoreThreadOptions): Promise<StoreThread> {
  const thread = new StoreThread(options);
  await thread.start();
  return thread;
}

function startThread(workerData: ThreadData): Worker {
  // In source and compiled alike.
  const program = new URL(`./thread${extname(import.meta.url)}`, import.meta.url);
  return new Worker(program, { workerData, name: "store" });
}

/** How often a failed store is tried again, in milliseconds. */
const probeMs = 500;

/**
 * How long the store may take to answer, in milliseconds; then an operation fails. It may be done
 * all the same.
 */
const answerMs = 5_000;

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
  readonly onLost: ((error: Error) => void) | undefined;
  readonly isProbe: boolean;
  readonly sinceMs: number;
}

/**
 * The embedded store, in a thread of its own, so that writing to the disk does not block the event
 * loop. Writes that wait at the same time share one commit.
 */
export class StoreThread {
  readonly #options: StoreThreadOptions;
  readonly #waiting = new Map<number, Waiting>();
  /** What this turn of the event loop asks: it leaves in one message, and wakes the thread once. */
  #outbox: Request[] = [];
  #worker: Worker | undefined;
  #lastId = 0;
  #trouble: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #answerTimer: NodeJS.Timeout | undefined;
  #closing: Promise<void> | undefined;
  #ended: Promise<unknown> = Promise.resolve();

  constructor(options: StoreThreadOptions) {
    this.#options = options;
  }

  /** Why the store fails; undefined while it works. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  async start(): Promise<void> {
    const { directory, synchronous = "FULL", startWorker = startThread } = this.#options;
    const worker = startWorker({ directory, synchronous });
    const { promise: ended, resolve: onEnd } = Promise.withResolvers<void>();
    this.#ended = ended;
    let failure: Error | undefined;
    const opened = Promise.withResolvers<Opened>();
    worker.once("message", (first: Opened) => {
      opened.resolve(first);
      worker.on("message", (replies: Reply[]) => this.#settle(replies));
    });
    worker.on("error", (error) => {
      failure = error instanceof Error ? error : new Error(String(error));
    });
    worker.once("exit", () => {
      onEnd();
      opened.reject(failure ?? new Error("the store's thread ended before it was open"));
      this.#onExit(worker, failure);
    });
    const first = await opened.promise;
    if ("refused" in first) {
      await ended;
      throw new StoreRefused(first.refused);
    }
    this.#worker = worker;
    this.#keepAlive();
    // It was closed while a thread that had failed was started again.
    if (this.#closing) worker.postMessage("close");
  }

  /**
   * Runs an operation. A write resolves once it is on the disk.
   * @param map is called with the result as soon as it arrives, in the order in which the
   * operations were done
   * @param onLost is called if the thread has ended, and no result arrives any more: the operation may
   * have been done
   * @throws GatewayError UNAVAILABLE when the store fails: the operation was not done, as far as is
   * known
   */
  run<T, M = T>(
    operation: string,
    args: readonly unknown[],
    map: (result: T) => M = (result) => result as unknown as M,
    onLost?: (error: Error) => void,
  ): Promise<M> {
    return new Promise<M>((resolve, reject) => {
      const worker = this.#worker;
      if (this.#closing) return reject(storeFailed("it is closed"));
      if (!worker) return reject(storeFailed(this.#trouble ?? "it is not open"));
      // Behind what hangs it would stay in line after its caller has gone: soon too many for memory.
      if (this.#trouble === silent && operation !== probe) return reject(storeFailed(silent));
      const id = ++this.#lastId;
      this.#waiting.set(id, {
        resolve(value) {
          try {
            resolve(map(value as T));
          } catch (error) {
            reject(error);
          }
        },
        reject,
        onLost,
        isProbe: operation === probe,
        sinceMs: performance.now(),
      });
      this.#keepAlive();
      this.#lookIn(answerMs);
      if (this.#outbox.push({ id, operation, args }) === 1) setImmediate(() => this.#send());
    });
  }

  #send(): void {
    const requests = this.#outbox;
    if (requests.length === 0) return;
    this.#outbox = [];
    try {
      this.#worker?.postMessage(requests);
    } catch (error) {
      const failure = storeFailed(`not sent to its thread: ${reasonOf(error)}`);
      for (const { id } of requests) {
        this.#waiting.get(id)?.reject(failure);
        this.#waiting.delete(id);
      }
    }
  }

  /** Ends the thread after all pending operations. */
  close(): Promise<void> {
    this.#closing ??= (async () => {
      clearTimeout(this.#timer);
      clearTimeout(this.#answerTimer);
      this.#worker?.ref();
      this.#send();
      this.#worker?.postMessage("close");
      await this.#ended;
    })();
    return this.#closing;
  }

  #settle(replies: readonly Reply[]): void {
    for (const reply of replies) {
      const waiting = this.#waiting.get(reply.id);
      if (!waiting) continue;
      this.#waiting.delete(reply.id);
      if ("error" in reply) {
        this.#fail(reply.error);
        waiting.reject(storeFailed(reply.error));
      } else {
        if (waiting.isProbe) this.#works();
        waiting.resolve(reply.value);
      }
    }
    this.#keepAlive();
  }

  /** Lets the process end while no operation is pending. */
  #keepAlive(): void {
    if (this.#closing) return;
    if (this.#waiting.size > 0) this.#worker?.ref();
    else this.#worker?.unref();
  }

  /**
   * Rejects operations that waited too long. If a result still arrives, `map` is called with it.
   */
  #lookIn(ms: number): void {
    if (this.#answerTimer) return;
    this.#answerTimer = setTimeout(() => {
      this.#answerTimer = undefined;
      const now = performance.now();
      for (const { sinceMs, reject } of this.#waiting.values()) {
        const leftMs = sinceMs + answerMs - now;
        if (leftMs > 0) return this.#lookIn(leftMs);
        this.#fail(silent);
        reject(storeFailed(silent));
      }
    }, ms).unref();
  }

  #onExit(worker: Worker, error: Error | undefined): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    const reason = error?.message ?? "its thread ended";
    if (!this.#closing) this.#fail(reason);
    const failure = storeFailed(reason);
    for (const { reject, onLost } of this.#waiting.values()) {
      reject(failure);
      onLost?.(failure);
    }
    this.#waiting.clear();
    this.#outbox = [];
  }

  #fail(reason: string): void {
    const news = this.#trouble !== reason;
    this.#trouble = reason;
    if (news) this.#options.onStateChange?.(reason);
    this.#probeLater();
  }

  #works(): void {
    if (this.#trouble === undefined) return;
    this.#trouble = undefined;
    this.#options.onStateChange?.(undefined);
  }

  #probeLater(): void {
    if (this.#timer || this.#closing) return;
    this.#timer = setTimeout(async () => {
      this.#timer = undefined;
      try {
        if (!this.#worker) await this.start();
        await this.run(probe, []);
      } catch (error) {
        if (this.#closing) return;
        if (error instanceof StoreRefused) this.#fail(error.message);
        this.#probeLater();
      }
    }, probeMs).unref();
  }
}

const silent = `the disk has not answered for ${answerMs} ms`;

/** The operation that shows whether the store takes writes. */
const probe = "probe";

const storeFailed = (reason: string) => storeAway(new Error(reason));
