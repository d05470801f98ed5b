import type { DatabaseSync, StatementSync } from "node:sqlite";
import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import { type OpenDatabase, openDirectory } from "./directory.ts";
import { reasonOf, StoreRefused } from "./errors.ts";
import type { Opened, Operation, Operations, Reply, Request, ThreadData } from "./protocol.ts";

/** A transaction with so many requests takes no more. */
const maxAtOnce = 1_000;

/** Runs the requests that wait at the same time in one transaction. */
export class StoreWorker {
  readonly #database: DatabaseSync;
  readonly #operations: Operations;
  readonly #save: StatementSync;
  readonly #undo: StatementSync;
  readonly #keep: StatementSync;
  readonly #assertInPlace: () => void;

  /** @param assertInPlace throws if what is written would be lost with this process */
  constructor(database: DatabaseSync, operations: Operations, assertInPlace = () => {}) {
    this.#assertInPlace = assertInPlace;
    this.#database = database;
    this.#operations = operations;
    this.#save = database.prepare("SAVEPOINT request");
    this.#undo = database.prepare("ROLLBACK TO request");
    this.#keep = database.prepare("RELEASE request");
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
      if (!(error instanceof RequestFailed)) return this.#withoutWrites(requests, error);
    }
    try {
      return this.#inTransaction(requests, (request) => this.#apart(request));
    } catch (error) {
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

  /**
   * With a savepoint for a write, so that its failure does not fail the others, unless SQLite rolled
   * back the whole transaction. It costs a copy of each page that the request changes.
   */
  #apart(request: Request): Reply {
    const isWrite = this.#isWrite(request);
    if (isWrite) this.#save.run();
    const reply = this.#reply(request);
    if ("error" in reply) {
      // A full disk may have ended the whole transaction; even a read meets one.
      if (!this.#database.isTransaction) throw new Error(reply.error);
      if (isWrite) this.#undo.run();
      this.#operations.undone?.();
    }
    if (isWrite) this.#keep.run();
    return reply;
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

/** A request failed, not the transaction: the batch may be tried again. */
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
