import type { DatabaseSync } from "node:sqlite";
import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import { type OpenDatabase, openDirectory } from "./directory.ts";
import { reasonOf, StoreRefused } from "./errors.ts";

export interface Operations {
  /** These change nothing in the database, but may add the account that they are about. */
  readonly reads: Readonly<Record<string, Operation>>;
  /** These run in a transaction, which is on the disk before their results are returned. */
  readonly writes: Readonly<Record<string, Operation>>;
  /** Writes were rolled back: what the operations remember of the database may be wrong. */
  undone?(): void;
}

/** Arguments and results are copied between threads: no functions, no class instances. */
// biome-ignore lint/suspicious/noExplicitAny: each operation has types of its own
type Operation = (...args: any[]) => unknown;

/** One call of an operation, as it is sent to the thread. */
export interface Request {
  readonly id: number;
  readonly operation: string;
  readonly args: readonly unknown[];
}

export type Reply =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: string };

/** What the thread is started with. */
export interface ThreadData {
  readonly directory: string;
  /** OFF only in tests that show what FULL protects from. */
  readonly synchronous: "FULL" | "OFF";
}

/** The thread's first message, once; every later one is a list of replies. */
export type Opened = { readonly opened: true } | { readonly refused: string };

/** A transaction with so many requests takes no more. */
const maxAtOnce = 1_000;

/** Runs the requests that wait at the same time in one transaction. */
export class StoreWorker {
  readonly #database: DatabaseSync;
  readonly #operations: Operations;
  readonly #assertInPlace: () => void;

  /** @param assertInPlace throws if what is written would be lost with this process */
  constructor(database: DatabaseSync, operations: Operations, assertInPlace = () => {}) {
    this.#assertInPlace = assertInPlace;
    this.#database = database;
    this.#operations = operations;
  }

  /** Nothing is to be answered before this returns: then what the replies say is on the disk. */
  do(requests: readonly Request[]): Reply[] {
    if (!requests.some((request) => this.#isWrite(request))) {
      return requests.map((request) => this.#reply(request));
    }
    try {
      return this.#inTransaction(requests, (request) => {
        const reply = this.#reply(request);
        if ("error" in reply) throw new RequestFailed(reply.error);
        return reply;
      });
    } catch (error) {
      const isOfOne = error instanceof RequestFailed && requests.length > 1;
      // Each in a transaction of its own: only what fails is refused.
      if (isOfOne) return requests.flatMap((request) => this.do([request]));
      return this.#withoutWrites(requests, error);
    }
  }

  /** Refuses the writes of a transaction that failed. Reads go on while the disk takes no writes. */
  #withoutWrites(requests: readonly Request[], error: unknown): Reply[] {
    // Within a transaction that could not be rolled back they would see what is not on the disk.
    const isOver = !this.#database.isTransaction;
    return requests.map((request) =>
      isOver && !this.#isWrite(request)
        ? this.#reply(request)
        : { id: request.id, error: reasonOf(error) },
    );
  }

  #inTransaction(requests: readonly Request[], reply: (request: Request) => Reply): Reply[] {
    try {
      this.#assertInPlace();
      this.#database.exec("BEGIN IMMEDIATE");
      const replies = requests.map(reply);
      this.#database.exec("COMMIT");
      return replies;
    } catch (error) {
      try {
        if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
      } catch {
        // If this fails, SQLite rolls back when the file is opened again: nothing was acknowledged.
      }
      this.#operations.undone?.();
      throw error;
    }
  }

  #reply(request: Request): Reply {
    try {
      return { id: request.id, value: this.#operation(request) };
    } catch (error) {
      return { id: request.id, error: reasonOf(error) };
    }
  }

  #operation({ operation, args }: Request): unknown {
    const { reads, writes } = this.#operations;
    const run: Operation | undefined = writes[operation] ?? reads[operation];
    if (!run) throw new Error(`no such operation: ${operation}`);
    return run(...args);
  }

  #isWrite({ operation }: Request): boolean {
    return this.#operations.writes[operation] !== undefined;
  }
}

/** A request failed, not the transaction: the others may be done without it. */
class RequestFailed extends Error {}

/** Opens the directory, says so by its port, and does what comes until it is to close. */
export function serve(
  port: MessagePort,
  { directory, synchronous }: ThreadData,
  operationsOn: (database: DatabaseSync) => Operations,
): void {
  let opened: OpenDatabase;
  try {
    opened = openDirectory(directory, synchronous);
  } catch (error) {
    if (!(error instanceof StoreRefused)) throw error;
    port.postMessage({ refused: error.message } satisfies Opened);
    port.close();
    return;
  }
  const { database, assertInPlace, close } = opened;
  const worker = new StoreWorker(database, operationsOn(database), assertInPlace);
  port.on("message", (message: readonly Request[] | "close") => {
    // With these requests go those that arrived while the last transaction was written.
    const requests: Request[] = [];
    let next: readonly Request[] | "close" | undefined = message;
    for (; next && next !== "close"; next = receiveMessageOnPort(port)?.message) {
      requests.push(...next);
      if (requests.length >= maxAtOnce) break;
    }
    if (requests.length > 0) port.postMessage(worker.do(requests));
    if (next !== "close") return;
    close();
    port.close();
  });
  port.postMessage({ opened: true } satisfies Opened);
}
