import type { DatabaseSync } from "node:sqlite";
import type { Operations } from "../../../src/stores/sqlite/worker.ts";

/** Operations for the tests of the store's thread. */
export function open(database: DatabaseSync): Operations {
  database.exec("CREATE TABLE IF NOT EXISTS notes (text TEXT UNIQUE)");
  const add = database.prepare("INSERT INTO notes VALUES (?)");
  const all = database.prepare("SELECT text FROM notes ORDER BY rowid");
  return {
    reads: {
      all: () => all.all().map(({ text }) => text),
      inTransaction: () => database.isTransaction,
      /** Blocks the thread like a disk that does not answer. */
      wait: (ms: number) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms),
      /**
       * Says by the gate's second value that it holds the thread, and holds it until the test opens
       * the gate by the first one: operations that are sent meanwhile wait together.
       */
      hold(gate: Int32Array): void {
        Atomics.store(gate, 1, 1);
        Atomics.notify(gate, 1);
        Atomics.wait(gate, 0, 0);
      },
      /** Makes all writes fail, and no read. */
      refuseWrites: (refuse: boolean) => database.exec(`PRAGMA query_only = ${refuse}`),
      /** Fails like a read for which a changed page has to be written to a full disk. */
      readEndingTransaction() {
        if (database.isTransaction) database.exec("ROLLBACK");
        throw new Error("disk is full");
      },
      /** Ends the thread. */
      exit: () => process.exit(1),
    },
    writes: {
      add: (text: string) => void add.run(text),
      addBoth(first: string, second: string) {
        add.run(first);
        add.run(second);
      },
      /** Fails like a write that fills the disk. */
      endTransaction() {
        database.exec("ROLLBACK");
        throw new Error("disk is full");
      },
    },
  };
}
