import type { Scope } from "../auth/caller.ts";
import { GatewayError } from "../errors.ts";
import type { EventKind } from "../gen/payments/v1/event_pb.ts";
import type { Call } from "./core.ts";

/** @throws GatewayError PERMISSION_DENIED when the caller lacks the scope. */
export function requireScope(call: Call, scope: Scope): void {
  if (call.caller.scopes.has(scope)) return;
  throw new GatewayError("PERMISSION_DENIED", `needs the scope ${scope}`, {
    reason: "SCOPE_MISSING",
  });
}

/**
 * A payment or payout may be watched with the scope, or with a watch token for that very one.
 * @throws GatewayError PERMISSION_DENIED otherwise.
 */
export function requireWatch(call: Call, scope: Scope, kind: EventKind, externalId: string): void {
  const { watch } = call.caller;
  if (watch?.kind === kind && watch.externalId === externalId) return;
  requireScope(call, scope);
}
