import type { Reader } from "./reader.ts";
import { wholeNumber } from "./values.ts";

/** Bytes that unverified callback bodies may hold together: at least one of the largest size. */
export function readUnverifiedBytes(read: Reader): number {
  return read("MAX_UNVERIFIED_CALLBACK_BYTES", wholeNumber(1_048_576, 2 ** 40), "67108864");
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
