import { type DescMethod, getOption } from "@bufbuild/protobuf";
import type { Caller } from "../auth/caller.ts";
import { oncePer } from "../collections/once-per.ts";
import { GatewayError } from "../errors.ts";
import { EventKind } from "../gen/payments/v1/event_pb.ts";
import { scope as scopeOption } from "../gen/payments/v1/options_pb.ts";
import { PaymentService } from "../gen/payments/v1/payment_service_pb.ts";
import { PayoutService } from "../gen/payments/v1/payout_service_pb.ts";
import { isKind, type Kind, kinds } from "../model/kinds.ts";
import type { Call } from "./core.ts";

/**
 * Checks that the caller may call a method. It needs the scope that the proto declares for the
 * method, or, to watch a payment or payout, a watch token for exactly that one. A method that
 * declares no scope is refused to everybody. `customer.ts` limits what a customer-bound caller may
 * act on.
 * @throws GatewayError PERMISSION_DENIED
 */
export function authorize({ caller }: Call, method: DescMethod, request: unknown): void {
  requireScope(caller, method);
  const { scopes, watch } = caller;
  const needed = scopeOf(method, request);
  if ((scopes as ReadonlySet<string>).has(needed)) return;
  if (watch && watchMethods[watch.kind] === method) {
    if ((request as { externalId?: unknown }).externalId === watch.externalId) return;
  }
  throw scopeMissing(needed);
}

/**
 * The part of `authorize` that depends on the method alone, so that a request is decoded only for a
 * caller who may call its method. Of a scope by kind, any kind will do.
 * @throws GatewayError PERMISSION_DENIED
 */
export function requireScope({ scopes, watch }: Caller, method: DescMethod): void {
  const needed = declaredBy(method).scopes;
  if (needed.length === 0) {
    throw new GatewayError("PERMISSION_DENIED", "this method is not open to callers", {
      reason: "METHOD_NOT_OPEN",
    });
  }
  if (watch && watchMethods[watch.kind] === method) return;
  const isHeld = (scope: string) => (scopes as ReadonlySet<string>).has(scope);
  if (!needed.some(isHeld)) throw scopeMissing(needed.join(" or "));
}

function scopeMissing(needed: string): GatewayError {
  return new GatewayError("PERMISSION_DENIED", `needs the scope ${needed}`, {
    reason: "SCOPE_MISSING",
  });
}

/**
 * What a method declares, and the scopes of which one is needed: one, or one for each kind. Reading
 * an option parses it.
 */
const declaredBy = oncePer((method: DescMethod) => {
  const text = getOption(method, scopeOption);
  const all = Object.values(kinds).map(({ resource }) => text.replace("{kind}", resource));
  return { text, scopes: text === "" ? [] : [...new Set(all)] };
});

/** The scope that a request needs. An unknown kind is refused later, when it is validated. */
function scopeOf(method: DescMethod, request: unknown): string {
  const { text } = declaredBy(method);
  if (!text.includes("{kind}")) return text;
  const { kind } = request as { readonly kind: number };
  return text.replace("{kind}", kinds[isKind(kind) ? kind : EventKind.PAYMENT].resource);
}

/**
 * For data that no method, and so no scope, covers: any service may read it, but not a customer or
 * the holder of a watch token.
 * @throws GatewayError PERMISSION_DENIED
 */
export function requireService({ caller }: Call): void {
  if (caller.watch === undefined && caller.customer === undefined) return;
  throw new GatewayError("PERMISSION_DENIED", "only services may call this method", {
    reason: "SERVICES_ONLY",
  });
}

/** The methods that watch one payment or payout. */
const watchMethods: Readonly<Record<Kind, DescMethod>> = {
  [EventKind.PAYMENT]: PaymentService.method.watchPayment,
  [EventKind.PAYOUT]: PayoutService.method.watchPayout,
};
