import type { DatabaseSync, StatementSync } from "node:sqlite";
import {
  type MessagePort,
  parentPort,
  receiveMessageOnPort,
  workerData,
} from "node:worker_threads";
import { openDirectory } from "./directory.ts";
import { reasonOf, StoreRefused } from "./errors.ts";
import type {
  Opened,
  Operation,
  Operations,
  OperationsModule,
  Reply,
  Request,
  ThreadData,
} from "./protocol.ts";

/** Most requests in one transaction. */
const maxAtOnce = 1_000;

/** Runs the requests that wait at the same time in one transaction. */
export class StoreWorker {
  readonly #database: DatabaseSync;
  readonly #operations: Operations;
  readonly #save: StatementSync;
  readonly #undo: StatementSync;
  readonly #keep: StatementSync;

  constructor(database: DatabaseSync, operations: Operations) {
    this.#database = database;
    this.#operations = operations;
    this.#save = database.prepare("SAVEPOINT request");
    this.#undo = database.prepare("ROLLBACK TO request");
    this.#keep = database.prepare("RELEASE request");
  }

  /** Nothing is to be answered before this returns: then what the replies say is on the disk. */
  do(requests: readonly Request[]): Reply[] {
    if (!requests.some((request) => this.#isWrite(request))) {
      return requests.map((request) => this.#reply(request, () => this.#operation(request)));
    }
    try {
      this.#database.exec("BEGIN IMMEDIATE");
      const replies = requests.map((request) =>
        this.#reply(request, () =>
          this.#isWrite(request) ? this.#saved(request) : this.#operation(request),
        ),
      );
      this.#database.exec("COMMIT");
      return replies;
    } catch (error) {
      try {
        if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
      } catch {
        // If this fails, SQLite rolls back when the file is opened again: nothing was acknowledged.
      }
      return requests.map(({ id }) => ({ id, error: reasonOf(error) }));
    }
  }

  /** A failed request does not fail the others, unless the whole transaction was rolled back. */
  #reply({ id }: Request, run: () => unknown): Reply {
    try {
      return { id, value: run() };
    } catch (error) {
      if (error instanceof TransactionLost) throw error.cause;
      return { id, error: reasonOf(error) };
    }
  }

  #saved(request: Request): unknown {
    this.#save.run();
    try {
      const value = this.#operation(request);
      this.#keep.run();
      return value;
    } catch (error) {
      // A full disk may have ended the whole transaction.
      if (!this.#database.isTransaction) throw new TransactionLost(error);
      this.#undo.run();
      this.#keep.run();
      throw error;
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

class TransactionLost extends Error {
  constructor(cause: unknown) {
    super("the transaction was rolled back", { cause });
  }
}

async function start(port: MessagePort): Promise<void> {
  const { directory, operations, synchronous } = workerData as ThreadData;
  const { database, close } = openDirectory(directory, synchronous);
  const { open } = (await import(operations)) as OperationsModule;
  const worker = new StoreWorker(database, withProbe(database, open(database)));
  port.on("message", (message: Request | "close") => {
    // With this request go those that arrived while the last transaction was written.
    const requests: Request[] = [];
    let next: Request | "close" | undefined = message;
    for (; next && next !== "close"; next = receiveMessageOnPort(port)?.message) {
      requests.push(next);
      if (requests.length === maxAtOnce) break;
    }
    if (requests.length > 0) port.postMessage(worker.do(requests));
    if (next !== "close") return;
    close();
    port.close();
  });
  port.postMessage({ opened: true } satisfies Opened);
}

/** Adds `probe`, which shows that the disk takes writes, and has space for more than the smallest. */
export function withProbe(database: DatabaseSync, { reads, writes }: Operations): Operations {
  const write = database.prepare(
    "INSERT INTO probe (id, bytes) VALUES (1, randomblob(65536)) ON CONFLICT DO UPDATE SET bytes = excluded.bytes",
  );
  return { reads, writes: { ...writes, probe: () => void write.run() } };
}

if (parentPort) {
  const port = parentPort;
  start(port).catch((error: unknown) => {
    if (!(error instanceof StoreRefused)) throw error;
    port.postMessage({ refused: error.message } satisfies Opened);
    port.close();
  });
}
