import { Worker } from "node:worker_threads";
import { GatewayError } from "../errors.ts";
import { moduleBeside } from "./module-beside.ts";
import type { Opened, Reply, Request, ThreadData } from "./room.ts";
import { StoreRefused } from "./store-refused.ts";

export interface StoreThreadOptions {
  readonly directory: string;
  /** Modules of the rooms that keep something in it, by name; see RoomModule. */
  readonly rooms: Readonly<Record<string, URL>>;
  /** Hears when the store fails, with SQLite's reason, and when it works again (undefined). */
  readonly onStateChange?: (trouble: string | undefined) => void;
  /** Default: FULL. OFF is for tests that show what it is for. */
  readonly synchronous?: "FULL" | "OFF";
}

/**
 * The embedded store, in a thread of its own: no write to the disk holds up a call, and what many
 * calls write at a time goes to the disk together.
 */
export interface StoreThread {
  /**
   * Runs an operation of a room. A write resolves once it is on the disk.
   * @param map is told the result as soon as it is known, in the order in which operations were done
   * @throws GatewayError UNAVAILABLE when the store fails: what was asked for was not done, as far as
   * can be told
   */
  run<T, M = T>(
    room: string,
    operation: string,
    args: readonly unknown[],
    map?: (result: T) => M,
  ): Promise<M>;
  /** Why it fails; undefined while it works. */
  readonly trouble: string | undefined;
  /** Ends the thread when all that was asked for is done. */
  close(): Promise<void>;
}

/** @throws StoreRefused when the directory cannot be used. */
export async function openStoreThread(options: StoreThreadOptions): Promise<StoreThread> {
  const thread = new Thread(options);
  await thread.start();
  return thread;
}

/** How often a store that failed is tried again, in milliseconds. */
const probeMs = 500;

/**
 * A disk that takes longer is one that does not answer, in milliseconds. What was asked for may be
 * done all the same.
 */
const answerMs = 5_000;

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
  readonly isProbe: boolean;
  readonly sinceMs: number;
}

class Thread implements StoreThread {
  readonly #options: StoreThreadOptions;
  readonly #waiting = new Map<number, Waiting>();
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

  get trouble(): string | undefined {
    return this.#trouble;
  }

  async start(): Promise<void> {
    const { directory, rooms, synchronous = "FULL" } = this.#options;
    const addresses = Object.entries(rooms).map(([name, url]) => [name, url.href]);
    const workerData: ThreadData = {
      directory,
      rooms: Object.fromEntries(addresses),
      synchronous,
    };
    const worker = new Worker(moduleBeside(import.meta.url, "worker"), {
      workerData,
      name: "store",
    });
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
  }

  run<T, M = T>(
    room: string,
    operation: string,
    args: readonly unknown[],
    map: (result: T) => M = (result) => result as unknown as M,
  ): Promise<M> {
    return new Promise<M>((resolve, reject) => {
      const worker = this.#worker;
      if (this.#closing) return reject(storeFailed("it is closed"));
      if (!worker) return reject(storeFailed(this.#trouble ?? "it is not open"));
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
        isProbe: room === probe.room,
        sinceMs: performance.now(),
      });
      this.#keepAlive();
      this.#lookIn(answerMs);
      worker.postMessage({ id, room, operation, args } satisfies Request);
    });
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      clearTimeout(this.#timer);
      clearTimeout(this.#answerTimer);
      this.#worker?.ref();
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

  /** A process that awaits nothing of the store may end. */
  #keepAlive(): void {
    if (this.#closing) return;
    if (this.#waiting.size > 0) this.#worker?.ref();
    else this.#worker?.unref();
  }

  /** Rejects what waited too long; if the result still comes, `map` is called with it. */
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
    for (const { reject } of this.#waiting.values()) reject(storeFailed(reason));
    this.#waiting.clear();
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
        await this.run(probe.room, probe.operation, []);
      } catch (error) {
        if (this.#closing) return;
        if (error instanceof StoreRefused) this.#fail(error.message);
        this.#probeLater();
      }
    }, probeMs).unref();
  }
}

const silent = `the disk has not answered for ${answerMs} ms`;

/** What shows that the store takes writes; part of every store. */
const probe = { room: "store", operation: "probe" } as const;

function storeFailed(reason: string): GatewayError {
  return new GatewayError("UNAVAILABLE", "the store is out of reach", {
    reason: "STORE_UNAVAILABLE",
    retryAfterMs: 1_000,
    cause: new Error(reason),
  });
}
