import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");

/** Collects garbage at once, so that what is left in memory is in use. */
export const collect = runInNewContext("gc") as (options?: { type: "minor" }) => void;

/** The bytes of the heap that are in use. */
export function heapBytes(): number {
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}
