import { intakeLimits } from "../net/intake-limits.ts";
import type { Reader } from "./reader.ts";
import { wholeNumber } from "./values.ts";

/** Memory of all bodies and unread answers together: room for a few of the largest size. */
export function readBufferedBytes(read: Reader): number {
  const { heldBytes } = intakeLimits;
  return read("MAX_BUFFERED_BYTES", wholeNumber(8 * 1_048_576, 2 ** 40), `${heldBytes}`);
}

/** 0 turns a limit off. */
export function readLimits(read: Reader) {
  const limits = {
    maxConcurrentCalls: read("MAX_CONCURRENT_CALLS", wholeNumber(0, 1_000_000), "5000"),
    maxConnections: read("MAX_CONNECTIONS", wholeNumber(0, 1_000_000), "10000"),
    maxConnectionsPerAddress: read("MAX_CONNECTIONS_PER_ADDRESS", wholeNumber(0, 1_000_000), "0"),
  };
  return Object.fromEntries(Object.entries(limits).filter(([, max]) => max > 0)) as Partial<
    typeof limits
  >;
}
