import { GatewayError } from "../errors.ts";
import { systemCode } from "../net/system-errors.ts";
import type { RedisClient } from "./connect.ts";
import { RedisTimeout, readyWithin, within } from "./deadline.ts";
import { linkOf } from "./link.ts";

/** How long Redis may take to answer a command that does not block, in milliseconds. */
const answerMs = 1_000;
/** How long to wait for a connection that is being opened: a short break is no outage. */
const openMs = 300;
const retryAfterMs = 1_000;

/**
 * Sends a command to Redis and waits up to `ms` for the answer, 1 s by default.
 * @throws GatewayError UNAVAILABLE if Redis does not answer, or answers an error. The command may
 * have run all the same.
 */
export async function ask<T>(
  client: RedisClient,
  question: () => Promise<T>,
  ms: number = answerMs,
): Promise<T> {
  try {
    if (client.status !== "ready") await readyWithin(openMs, client);
    return await within(ms, question());
  } catch (error) {
    throw storeAway(error, client);
  }
}

/** The store did not answer, or answered an error. The command may have run all the same. */
export class StoreUnavailable extends GatewayError {
  /**
   * Whether the store is away, for other processes too: it refuses connections or closes them at
   * once, cannot be reached, or its cluster reports that it is down. Otherwise it is silent or
   * answers an error (read-only, loading, out of memory, too few replicas): it may hold what it did
   * not return.
   */
  readonly away: boolean;
  /** The connection broke or was missing: the next one shows whether the store is away. */
  readonly broken: boolean;

  constructor(given: unknown, { away = false, broken = false } = {}) {
    const cause = withoutCommand(given);
    super("UNAVAILABLE", "the store is out of reach", {
      ...{ reason: "STORE_UNAVAILABLE", retryAfterMs, cause },
      ...(cause instanceof Error && { storeSaid: cause.message }),
    });
    this.away = away;
    this.broken = broken;
  }
}

/**
 * Wraps an error of Redis as StoreUnavailable; a GatewayError is returned unchanged.
 * @param client the client that was asked; without it, the store is not reported as away
 */
export function storeAway(error: unknown, client?: RedisClient): GatewayError {
  if (error instanceof GatewayError) return error;
  const link = client && linkOf(client);
  const isReply = error instanceof Error && error.name === "ReplyError";
  // A cluster client retries first, and then reports it behind "Last error: ReplyError: ".
  if (link && error instanceof Error && /^(?:.*: ReplyError: )?CLUSTERDOWN/.test(error.message)) {
    return new StoreUnavailable(error, { away: link.onDown() });
  }
  if (!link || isReply) return new StoreUnavailable(error);
  const broken = !(error instanceof RedisTimeout);
  return new StoreUnavailable(error, { away: link.isAway(), broken });
}

/**
 * Whether the store that replicas share is away for all of them, so that calls that move money may
 * go on without it. A store that is silent or refuses a write is not away: other replicas may use
 * it at the same time.
 * @param key of what was asked for: in a cluster another node may be away, and this one only slow
 */
export function isAway(error: unknown, client: RedisClient, key: string): boolean {
  return error instanceof StoreUnavailable && error.away && linkOf(client).isAway(key);
}

/**
 * The driver's errors carry the whole command with the values to store, which must not be logged.
 */
function withoutCommand(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const words = inWords(error);
  const isNamed = words === error.message && error.name !== "Error";
  return new Error(isNamed ? `${error.name}: ${words}` : words);
}

/** The driver's errors for commands that were under way when their connection ended. */
const broken = /^(Reached the max retries per request|Command aborted due to|Connection is closed)/;

/**
 * The message of an error of the driver's, in the words of an operator. A server that does not know
 * a command quotes what came with it, such as a password; the driver quotes a reply that nobody asked
 * for.
 */
export function inWords({ message }: Error): string {
  if (message.startsWith("Stream isn't writeable")) return "no connection to Redis";
  if (message === "Failed to refresh slots cache.") return "no node of the cluster answers";
  if (broken.test(message)) return "the connection to Redis broke";
  return message.replace(/(?:, with args beginning with| Last reply):.*/s, "");
}

/**
 * Why Redis cannot be used, by an error of a connection or a command, without the command, which
 * contains keys and values: a system code such as ECONNREFUSED, or what Redis answered.
 */
export function troubleOf(error: unknown): string {
  if (error instanceof RedisTimeout) return error.message;
  if (error instanceof StoreUnavailable) return troubleOf(error.cause);
  // The driver keeps the error of a cluster's node beside its own.
  const { lastNodeError } = error as { lastNodeError?: unknown };
  const code = systemCode(error) ?? systemCode(lastNodeError);
  // Else the message is from Redis: a code in capitals, then a sentence.
  return code ?? inWords(error as Error);
}
