/** The program of the store's thread. */
import { parentPort, workerData } from "node:worker_threads";
import { open } from "./operations.ts";
import { serve, type ThreadData } from "./worker.ts";

if (parentPort) serve(parentPort, workerData as ThreadData, open);
