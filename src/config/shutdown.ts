import { ConfigError } from "./config-error.ts";
import type { Reader } from "./reader.ts";
import { duration, durationOrZero } from "./values.ts";

export interface ShutdownTimes {
  /** Longest time of the whole shutdown. */
  readonly timeoutMs: number;
  /** How long calls are still served after readiness fails, so that load balancers notice. */
  readonly delayMs: number;
  /** Longest time over which live streams are ended. */
  readonly spreadMs: number;
}

/** Reads the times. @throws ConfigError if the delay leaves too little time for calls in flight */
export function readShutdown(read: Reader): ShutdownTimes {
  const timeoutMs = read("SHUTDOWN_TIMEOUT", duration.refine(isUpToADay, upToADay), "10s");
  const delayMs = read("SHUTDOWN_DELAY", durationOrZero, "0");
  if (delayMs > timeoutMs / 2) {
    throw new ConfigError(
      "SHUTDOWN_DELAY",
      `got ${delayMs} ms, accepted is at most half of SHUTDOWN_TIMEOUT (${timeoutMs} ms): calls in flight need time after it`,
    );
  }
  const spreadMs = read("SHUTDOWN_SPREAD", durationOrZero.refine(isUpToADay, upToADay), "3s");
  return { timeoutMs, delayMs, spreadMs };
}

/** Node fires a timer of more than 24 days at once. */
function isUpToADay(ms: number): boolean {
  return ms <= 86_400_000;
}

const upToADay = "at most 1d, with a unit, such as 30s";
