/** The program of a store's thread with operations for its tests. */
import { parentPort, workerData } from "node:worker_threads";
import { open as openStore } from "../../../src/stores/sqlite/operations.ts";
import { serve } from "../../../src/stores/sqlite/worker.ts";
import { open } from "./test-operations.ts";

if (parentPort) {
  serve(parentPort, workerData, (database) => {
    const { reads, writes } = open(database);
    const { probe } = openStore(database).writes;
    return { reads, writes: { ...writes, ...(probe && { probe }) } };
  });
}
