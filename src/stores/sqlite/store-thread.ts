import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import { StoreTimeout, StoreUnavailable } from "../../errors.ts";
import { within } from "../../net/timer.ts";
import { StoreRefused } from "./errors.ts";
import type { Reply, Request, ThreadData } from "./worker.ts";

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

interface Waiting extends Pick<PromiseWithResolvers<unknown>, "resolve" | "reject"> {
  readonly onLost: ((error: Error) => void) | undefined;
  readonly isProbe: boolean;
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
  /** Why the store fails; undefined while it works. */
  trouble: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closing: Promise<void> | undefined;
  #ended: Promise<unknown> = Promise.resolve();

  constructor(options: StoreThreadOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { directory, synchronous = "FULL", startWorker = startThread } = this.#options;
    const worker = startWorker({ directory, synchronous });
    const opened = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    this.#ended = ended.promise;
    let failure = new Error("its thread ended");
    worker.on("message", (replies: readonly Reply[]) => {
      opened.resolve();
      this.#settle(replies);
    });
    worker.on("error", (error: Error) => {
      // Between threads an error keeps its name, not its class.
      failure = error.name === "StoreRefused" ? new StoreRefused(error.message) : error;
    });
    worker.once("exit", () => {
      ended.resolve();
      opened.reject(failure);
      this.#onExit(worker, failure.message);
    });
    await opened.promise;
    this.#worker = worker;
    // It was closed while a thread that had failed was started again.
    if (this.#closing) worker.postMessage("close");
    // Operations keep the process alive while they wait, by their deadlines.
    else worker.unref();
  }

  /**
   * Runs an operation. A write resolves once it is on the disk.
   * @param hear is called with the result even if that arrives too late, in the order in which the
   * operations were done
   * @param onLost is called if the thread has ended, and no result arrives any more: the operation may
   * have been done
   * @throws GatewayError UNAVAILABLE when the store fails: the operation was not done, as far as is
   * known
   */
  async run<T>(
    operation: string,
    args: readonly unknown[],
    hear?: (result: T) => void,
    onLost?: (error: Error) => void,
  ): Promise<T> {
    if (this.#closing) throw storeFailed("it is closed");
    if (!this.#worker) throw storeFailed(this.trouble ?? "it is not open");
    const isProbe = operation === probe;
    // Behind what hangs it would stay in line after its caller has gone: soon too many for memory.
    if (this.trouble === silent && !isProbe) throw storeFailed(silent);
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const answer = promise.then((value) => {
      hear?.(value as T);
      return value as T;
    });
    const id = ++this.#lastId;
    this.#waiting.set(id, { resolve, reject, onLost, isProbe });
    if (this.#outbox.push({ id, operation, args }) === 1) setImmediate(() => this.#send());
    try {
      return await within(answerMs, answer);
    } catch (error) {
      if (!(error instanceof StoreTimeout)) throw error;
      this.#says(silent);
      throw storeFailed(silent);
    }
  }

  #send(): void {
    if (this.#outbox.length > 0) this.#worker?.postMessage(this.#outbox);
    this.#outbox = [];
  }

  /** Ends the thread after all pending operations. */
  close(): Promise<void> {
    this.#closing ??= (async () => {
      clearTimeout(this.#timer);
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
        this.#says(reply.error);
        waiting.reject(storeFailed(reply.error));
      } else {
        if (waiting.isProbe) this.#says(undefined);
        waiting.resolve(reply.value);
      }
    }
  }

  #onExit(worker: Worker, reason: string): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    if (!this.#closing) this.#says(reason);
    const failure = storeFailed(reason);
    for (const { reject, onLost } of this.#waiting.values()) {
      reject(failure);
      onLost?.(failure);
    }
    this.#waiting.clear();
    this.#outbox = [];
  }

  #says(trouble: string | undefined): void {
    if (trouble !== undefined) this.#probeLater();
    if (this.trouble === trouble) return;
    this.trouble = trouble;
    this.#options.onStateChange?.(trouble);
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
        if (error instanceof StoreRefused) this.#says(error.message);
        this.#probeLater();
      }
    }, probeMs).unref();
  }
}

const silent = `the disk has not answered for ${answerMs} ms`;

/** The operation that shows whether the store takes writes. */
const probe = "probe";

const storeFailed = (reason: string) => new StoreUnavailable(new Error(reason));
