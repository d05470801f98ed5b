import { GatewayError } from "../errors.ts";
import { within } from "./deadline.ts";

/** How long Redis may take to answer what it answers at once, in milliseconds. */
export const answerMs = 1_000;

const retryAfterMs = 1_000;

/**
 * Awaits what was asked of Redis, for as long as given.
 * @throws GatewayError UNAVAILABLE when Redis does not answer or refuses. What was asked for may
 * have happened all the same.
 */
export async function reach<T>(answer: Promise<T>, ms: number = answerMs): Promise<T> {
  try {
    return await within(ms, answer);
  } catch (error) {
    if (error instanceof GatewayError) throw error;
    throw storeAway(error);
  }
}

/** The store is down, stalled, read-only, out of memory, or has too few replicas. */
export function storeAway(error: unknown): GatewayError {
  return new GatewayError("UNAVAILABLE", "the store is out of reach", {
    reason: "STORE_UNAVAILABLE",
    retryAfterMs,
    cause: withoutCommand(error),
  });
}

/** The client's errors carry the whole command, and with it what was to be stored: not for logs. */
function withoutCommand(error: unknown): unknown {
  return error instanceof Error ? new Error(`${error.name}: ${error.message}`) : error;
}
