import type { Reader } from "./reader.ts";
import { wholeNumber } from "./values.ts";

/** 0 turns a limit off. */
export function readLimits(read: Reader) {
  const limits = {
    maxConcurrentCalls: read("MAX_CONCURRENT_CALLS", wholeNumber(0, 1_000_000), "5000"),
    maxConnections: read("MAX_CONNECTIONS", wholeNumber(0, 1_000_000), "10000"),
    maxConnectionsPerAddress: read("MAX_CONNECTIONS_PER_ADDRESS", wholeNumber(0, 1_000_000), "0"),
  };
  return Object.fromEntries(Object.entries(limits).filter(([, most]) => most > 0)) as Partial<
    typeof limits
  >;
}
