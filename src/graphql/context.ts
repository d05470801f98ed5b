import type { ExecutionResult } from "graphql";
import type { Caller } from "../auth/caller.ts";
import type { Call, Core } from "../core/core.ts";
import { type FormatError, retryAfterSeconds } from "./errors.ts";
import type { Live } from "./live.ts";
import { Loaders } from "./loaders.ts";
import type { Operation } from "./operation.ts";

/** What the server provides for one HTTP request or one WebSocket operation. */
export interface Surroundings {
  readonly operation: Operation;
  /**
   * @param account the merchant account. Default: the one that the request names, or the caller's own
   * @throws GatewayError when the caller is not known or not allowed.
   */
  readonly authenticate: (account?: string) => Promise<Caller>;
  readonly live: Live;
  /** The header `Accept-Language`; null if there is none. */
  readonly acceptLanguage: string | null;
}

/** What the resolvers of one GraphQL operation share. */
export interface Context extends Surroundings {
  readonly core: Core;
  readonly call: Call;
  /** Cached reads of this operation; replaced when a mutation may have changed their values. */
  loaders: Loaders;
}

/** Default time limit of a query or mutation, in milliseconds. */
export const operationTimeoutMs = 60_000;

export function createContext(
  core: Core,
  caller: Caller,
  { operation, authenticate, live, acceptLanguage }: Surroundings,
): Context {
  const call = callOf(caller, operation);
  operation.caller = caller;
  const loaders = new Loaders(core, call);
  return { operation, authenticate, live, acceptLanguage, core, call, loaders };
}

/** The operation as the core's `Call`. */
export function callOf(caller: Caller, operation: Operation): Call {
  const { signal, requestId, streamsBy, deadlineMs, idempotencyKey, slot } = operation;
  return {
    caller,
    signal,
    requestId,
    onAbout: (externalId) => operation.about(externalId),
    transport: streamsBy,
    deadlineMs,
    deadlineIsOurs: true,
    onWait: slot.leave,
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    onReplayed() {
      operation.isReplay = true;
    },
  };
}

/**
 * Completes an executed operation: formats its errors. The result says in its extensions if a
 * mutation got the outcome of an earlier call, and the operation when what was refused may be tried
 * again.
 */
export function concluded(
  executed: ExecutionResult,
  { operation, acceptLanguage }: Pick<Surroundings, "operation" | "acceptLanguage">,
  formatError: FormatError,
): ExecutionResult {
  for (const error of executed.errors ?? []) noteRetry(operation, error);
  const errors = executed.errors?.map((error) => formatError(error, acceptLanguage));
  const result = errors ? { ...executed, errors } : executed;
  if (!operation.isReplay) return result;
  return { ...result, extensions: { ...result.extensions, idempotentReplayed: true } };
}

/** Notes when a refusal may be tried again: of several, the last to be so decides. */
export function noteRetry(operation: Operation, error: unknown): void {
  const seconds = retryAfterSeconds(error);
  if (seconds === undefined) return;
  operation.retryAfterSeconds = Math.max(operation.retryAfterSeconds ?? 0, seconds);
}

/** Discards cached reads: a mutation may have changed the values. */
export function renewLoaders(context: Context): void {
  context.loaders = new Loaders(context.core, context.call);
}
