import { GatewayError, StoreTimeout, StoreUnavailable } from "../errors.ts";
import { systemCode } from "../net/system-errors.ts";
import { within } from "../net/timer.ts";
import type { RedisClient } from "./connect.ts";
import { linkOf } from "./link.ts";
import { readyWithin } from "./ready-within.ts";

/** How long Redis may take to answer a command that does not block, in milliseconds. */
const answerMs = 1_000;
/** How long to wait for a connection that is being opened: a short break is no outage. */
const openMs = 300;

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

/**
 * Wraps an error of Redis as StoreUnavailable; a GatewayError is returned unchanged.
 * @param client the client that was asked; without it, the store is not reported as away
 */
export function storeAway(error: unknown, client?: RedisClient): GatewayError {
  if (error instanceof GatewayError) return error;
  const cause = withoutCommand(error);
  const link = client && linkOf(client);
  const isReply = error instanceof Error && error.name === "ReplyError";
  // A cluster client retries first, and then reports it behind "Last error: ReplyError: ".
  if (link && error instanceof Error && /^(?:.*: ReplyError: )?CLUSTERDOWN/.test(error.message)) {
    return new StoreUnavailable(cause, { away: link.onDown() });
  }
  if (!link || isReply) return new StoreUnavailable(cause);
  const broken = !(error instanceof StoreTimeout);
  return new StoreUnavailable(cause, { away: link.isAway(), broken });
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
  if (error instanceof StoreTimeout) return error.message;
  if (error instanceof StoreUnavailable) return troubleOf(error.cause);
  // The driver keeps the error of a cluster's node beside its own.
  const { lastNodeError } = error as { lastNodeError?: unknown };
  const code = systemCode(error) ?? systemCode(lastNodeError);
  // Else the message is from Redis: a code in capitals, then a sentence.
  return code ?? inWords(error as Error);
}
