import type { Caller } from "../auth/caller.ts";
import type { Call, Core } from "../core/core.ts";
import type { Live } from "./live.ts";
import { createLoaders, type Loaders } from "./loaders.ts";
import type { OperationLifetime } from "./operation-lifetime.ts";
import type { OperationRecord } from "./operation-record.ts";

/** What surrounds one request by HTTP or one operation by WebSocket. */
export interface Surroundings {
  readonly lifetime: OperationLifetime;
  /** @throws GatewayError when the caller is not known or not allowed. */
  readonly authenticate: () => Promise<Caller>;
  readonly live: Live;
}

/** What the resolvers of one GraphQL operation share. */
export interface Context {
  readonly core: Core;
  readonly call: Call;
  readonly record: OperationRecord;
  /** Lifts the operation's time limit: it is a stream. */
  readonly liftDeadline: () => void;
  readonly live: Live;
  /** Reads of this operation; renewed where what they remember may have changed. */
  loaders: Loaders;
}

/** The longest that one query, one mutation or the links of one event may take. */
export const operationTimeoutMs = 60_000;

export function createContext(
  core: Core,
  caller: Caller,
  { lifetime, live }: Pick<Surroundings, "lifetime" | "live">,
): Context {
  const call = callOf(caller, lifetime);
  const { record, liftDeadline } = lifetime;
  record.caller = caller.name;
  return { core, call, record, liftDeadline, live, loaders: createLoaders(core, call) };
}

/** The part of an operation that the core gets. */
export function callOf(caller: Caller, lifetime: OperationLifetime): Call {
  const { signal, requestId, record, deadlineMs, idempotencyKey, slot } = lifetime;
  return {
    caller,
    signal,
    requestId,
    transport: record.streamsBy,
    deadlineMs,
    deadlineIsOurs: true,
    ...(slot && { onWait: slot.leave }),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  };
}

/** Forgets what was read: a mutation or a further event of a stream may have changed it. */
export function renewLoaders(context: Context, call: Call = context.call): void {
  context.loaders = createLoaders(context.core, call);
}
