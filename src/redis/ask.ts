import { GatewayError } from "../errors.ts";
import type { RedisClient } from "./connect.ts";
import { within } from "./deadline.ts";

/** How long Redis may take to answer what it answers at once, in milliseconds. */
const answerMs = 1_000;
/** How long a connection that is being opened is waited for: a short break is no outage. */
const openMs = 300;
const retryAfterMs = 1_000;

/**
 * Asks Redis and awaits the answer for so long, 1 s by default.
 * @throws GatewayError UNAVAILABLE when Redis does not answer or refuses. What was asked for may
 * have happened all the same.
 */
export async function ask<T>(
  client: RedisClient,
  question: () => Promise<T>,
  ms: number = answerMs,
): Promise<T> {
  try {
    if (opening.has(client.status)) await within(openMs, ready(client)).catch(() => {});
    return await within(ms, question());
  } catch (error) {
    throw storeAway(error);
  }
}

/** The store is down, stalled, read-only, out of memory, or has too few replicas. */
export function storeAway(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  return new GatewayError("UNAVAILABLE", "the store is out of reach", {
    reason: "STORE_UNAVAILABLE",
    retryAfterMs,
    cause: withoutCommand(error),
  });
}

const opening: ReadonlySet<string> = new Set([
  ...["connecting", "connect", "close", "reconnecting"],
  // The driver gave up: see keepConnected.
  "end",
]);
const awaited = new WeakMap<RedisClient, Promise<void>>();

/** One listener for all that wait. */
function ready(client: RedisClient): Promise<void> {
  const known = awaited.get(client);
  if (known) return known;
  const opened = new Promise<void>((resolve) => {
    client.once("ready", () => {
      awaited.delete(client);
      resolve();
    });
  });
  awaited.set(client, opened);
  return opened;
}

/** The client's errors carry the whole command, and with it what was to be stored: not for logs. */
function withoutCommand(error: unknown): unknown {
  return error instanceof Error ? new Error(`${error.name}: ${error.message}`) : error;
}
