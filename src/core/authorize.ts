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
  const { externalId, kind } = request as { readonly externalId?: unknown; readonly kind?: number };
  if (mayWatch(caller, method) && externalId === caller.watch?.externalId) return;
  requireOne(caller, scopesOf(method, kind));
}

/**
 * The part of `authorize` that depends on the method alone, so that a request is decoded only for a
 * caller who may call its method. Of a scope by kind, any kind will do.
 * @throws GatewayError PERMISSION_DENIED
 */
export function requireScope(caller: Caller, method: DescMethod): void {
  if (!mayWatch(caller, method)) requireOne(caller, scopesOf(method));
}

/** Whether a method is the watch that the caller has a token for. */
function mayWatch({ watch }: Caller, method: DescMethod): boolean {
  return watch !== undefined && watchMethods[watch.kind] === method;
}

function requireOne({ scopes }: Caller, needed: readonly string[]): void {
  if (needed.some((scope) => (scopes as ReadonlySet<string>).has(scope))) return;
  if (needed.length > 0) {
    throw new GatewayError("PERMISSION_DENIED", `needs the scope ${needed.join(" or ")}`, {
      reason: "SCOPE_MISSING",
    });
  }
  throw new GatewayError("PERMISSION_DENIED", "this method is not open to callers", {
    reason: "METHOD_NOT_OPEN",
  });
}

/**
 * The scopes of which a method needs one: that of a kind if it is given, else those of all kinds. An
 * unknown kind is refused later, when the request is validated.
 */
function scopesOf(method: DescMethod, kind?: number): readonly string[] {
  const { text } = declaredBy(method);
  if (!text.includes("{kind}")) return text === "" ? [] : [text];
  const of = kind !== undefined && isKind(kind) ? [kinds[kind]] : Object.values(kinds);
  return of.map(({ resource }) => text.replace("{kind}", resource));
}

/** What a method declares. Reading an option parses it. */
const declaredBy = oncePer((method: DescMethod) => ({ text: getOption(method, scopeOption) }));

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
