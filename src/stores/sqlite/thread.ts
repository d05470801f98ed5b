/** The program of the store's thread. */
import { parentPort, workerData } from "node:worker_threads";
import { open } from "./operations.ts";
import type { ThreadData } from "./protocol.ts";
import { serve } from "./worker.ts";

if (parentPort) serve(parentPort, workerData as ThreadData, open);
