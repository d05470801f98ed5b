import { GatewayError } from "../errors.ts";
import type { RedisClient } from "./connect.ts";
import { RedisTimeout, within } from "./deadline.ts";
import { linkOf } from "./link.ts";

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
    throw storeAway(error, client);
  }
}

/** The store gave no answer that is one. What it was asked for may have happened all the same. */
export class StoreUnavailable extends GatewayError {
  /**
   * Whether it is away, for others as for this process: refused, closed, unreachable, or without a
   * primary by its cluster. Else it is silent or refuses what it is asked (read-only, loading, out of
   * memory, too few replicas): it may hold what it did not return.
   */
  readonly away: boolean;
  /** The connection broke or was not there: the next one shows whether the store is away. */
  readonly broken: boolean;

  constructor(cause: unknown, { away, broken }: { away: boolean; broken: boolean }) {
    super("UNAVAILABLE", "the store is out of reach", {
      reason: "STORE_UNAVAILABLE",
      retryAfterMs,
      cause: withoutCommand(cause),
    });
    this.away = away;
    this.broken = broken;
  }
}

/** @param client the one that was asked; without it no outage is reported. */
export function storeAway(error: unknown, client?: RedisClient): GatewayError {
  if (error instanceof GatewayError) return error;
  if (!client) return new StoreUnavailable(error, { away: false, broken: false });
  const link = linkOf(client);
  // The driver asks a few times more before it reports the failure.
  if (error instanceof Error && /^(?:.*: ReplyError: )?CLUSTERDOWN/.test(error.message)) {
    link.onClusterDown?.();
    const away = link.onClusterDown === undefined || link.isAway();
    return new StoreUnavailable(error, { away, broken: false });
  }
  if (error instanceof Error && error.name === "ReplyError") {
    return new StoreUnavailable(error, { away: false, broken: false });
  }
  const broken = !(error instanceof RedisTimeout);
  return new StoreUnavailable(error, { away: link.isAway(), broken });
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
