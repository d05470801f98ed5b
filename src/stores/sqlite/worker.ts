import type { DatabaseSync } from "node:sqlite";
import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import { openDirectory } from "./directory.ts";
import { messageOf } from "./errors.ts";

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

/** A transaction with so many requests takes no more. */
const maxAtOnce = 1_000;

/**
 * Makes a function that runs the requests that wait at the same time, in one transaction. Nothing is to
 * be answered before it returns: then what the replies say is on the disk.
 * @param assertInPlace throws if what is written would be lost with this process
 */
export function createWorker(
  database: DatabaseSync,
  { reads, writes, undone }: Operations,
  assertInPlace = () => {},
) {
  const isWrite = ({ operation }: Request) => writes[operation] !== undefined;
  /** A request is being done: what fails now is this one, not the transaction. */
  let isWithinOne = false;

  function replyTo({ id, operation, args }: Request): Reply {
    isWithinOne = true;
    const run: Operation | undefined = writes[operation] ?? reads[operation];
    if (!run) throw new Error(`no such operation: ${operation}`);
    const value = run(...args);
    isWithinOne = false;
    return { id, value };
  }

  function rollBack(): void {
    if (database.isTransaction) database.exec("ROLLBACK");
  }

  function inTransaction(requests: readonly Request[]): Reply[] {
    try {
      assertInPlace();
      database.exec("BEGIN IMMEDIATE");
      const replies = requests.map(replyTo);
      database.exec("COMMIT");
      return replies;
    } catch (error) {
      try {
        rollBack();
      } catch {
        // The next request tries again. Nothing was acknowledged.
      }
      undone?.();
      throw error;
    }
  }

  function work(requests: readonly Request[]): Reply[] {
    isWithinOne = false;
    try {
      // One that could not be rolled back before: nothing may see what is not on the disk.
      rollBack();
      return requests.some(isWrite) ? inTransaction(requests) : requests.map(replyTo);
    } catch (error) {
      // Only what fails is refused, and reads go on while the disk takes no writes: these are not tried
      // one by one, since a disk may take long to fail each.
      const isOfOne = isWithinOne;
      return requests.flatMap((request) =>
        requests.length > 1 && (isOfOne || !isWrite(request))
          ? work([request])
          : { id: request.id, error: messageOf(error) },
      );
    }
  }
  return work;
}

/**
 * Opens the directory, and does what comes by the port until it is to close. The first list of replies
 * is empty: it says that the directory is open.
 * @throws StoreRefused
 */
export function serve(
  port: MessagePort,
  { directory, synchronous }: ThreadData,
  operationsOn: (database: DatabaseSync) => Operations,
): void {
  const { database, assertInPlace, close } = openDirectory(directory, synchronous);
  const work = createWorker(database, operationsOn(database), assertInPlace);
  port.on("message", (message: readonly Request[] | "close") => {
    // With these requests go those that arrived while the last transaction was written.
    const requests: Request[] = [];
    let next: readonly Request[] | "close" | undefined = message;
    for (; next && next !== "close"; next = receiveMessageOnPort(port)?.message) {
      requests.push(...next);
      if (requests.length >= maxAtOnce) break;
    }
    if (requests.length > 0) port.postMessage(work(requests));
    if (next !== "close") return;
    close();
    port.close();
  });
  port.postMessage([]);
}
