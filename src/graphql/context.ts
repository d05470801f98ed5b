import type { ExecutionResult } from "graphql";
import type { Caller } from "../auth/caller.ts";
import type { Call, Core } from "../core/core.ts";
import { type FormatError, retryAfterSeconds } from "./errors.ts";
import type { Live } from "./live.ts";
import { Loaders } from "./loaders.ts";
import type { OperationLifetime } from "./operation-lifetime.ts";
import type { OperationRecord } from "./operation-record.ts";

/** What the server provides for one HTTP request or one WebSocket operation. */
export interface Surroundings {
  readonly lifetime: OperationLifetime;
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
  readonly record: OperationRecord;
  /** Cached reads of this operation; replaced when a mutation may have changed their values. */
  loaders: Loaders;
}

/** Default time limit of a query or mutation, in milliseconds. */
export const operationTimeoutMs = 60_000;

export function createContext(
  core: Core,
  caller: Caller,
  { lifetime, authenticate, live, acceptLanguage }: Surroundings,
): Context {
  const call = callOf(caller, lifetime);
  const { record } = lifetime;
  record.caller = caller;
  const loaders = new Loaders(core, call);
  return { lifetime, authenticate, live, acceptLanguage, core, call, record, loaders };
}

/** The operation as the core's `Call`. */
export function callOf(caller: Caller, lifetime: OperationLifetime): Call {
  const { signal, requestId, record, deadlineMs, idempotencyKey, slot } = lifetime;
  return {
    caller,
    signal,
    requestId,
    onAbout: record.about,
    transport: record.streamsBy,
    deadlineMs,
    deadlineIsOurs: true,
    ...(slot && { onWait: slot.leave }),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    onReplayed() {
      lifetime.isReplay = true;
    },
  };
}

/**
 * Completes an executed operation: formats its errors. The result says in its extensions if a
 * mutation got the outcome of an earlier call, and the lifetime when what was refused may be tried
 * again.
 */
export function concluded(
  executed: ExecutionResult,
  { lifetime, acceptLanguage }: Pick<Surroundings, "lifetime" | "acceptLanguage">,
  formatError: FormatError,
): ExecutionResult {
  for (const error of executed.errors ?? []) noteRetry(lifetime, error);
  const errors = executed.errors?.map((error) => formatError(error, acceptLanguage));
  const result = errors ? { ...executed, errors } : executed;
  if (!lifetime.isReplay) return result;
  return { ...result, extensions: { ...result.extensions, idempotentReplayed: true } };
}

/** Notes when a refusal may be tried again: of several, the last to be so decides. */
export function noteRetry(lifetime: OperationLifetime, error: unknown): void {
  const seconds = retryAfterSeconds(error);
  if (seconds === undefined) return;
  lifetime.retryAfterSeconds = Math.max(lifetime.retryAfterSeconds ?? 0, seconds);
}

/** Discards cached reads: a mutation may have changed the values. */
export function renewLoaders(context: Context): void {
  context.loaders = new Loaders(context.core, context.call);
}
