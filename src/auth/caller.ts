import { type GatewayError, unauthenticated } from "../errors.ts";
import type { Kind } from "../model/kinds.ts";

/** What a caller may do. `admin` gives access to the admin listener, and to no call. */
export const scopes = [
  "payments:write",
  "payments:read",
  "payouts:write",
  "payouts:read",
  "wallet:read",
  "wallet:write",
  "wallet:pan",
  "subscriptions:write",
  "operations:read",
  "events:read",
  "callbacks:resend",
  "watch:create",
  "admin",
] as const;

export type Scope = (typeof scopes)[number];

export function isScope(text: string): text is Scope {
  return (scopes as readonly string[]).includes(text);
}

/** What a caller's credentials allow. */
export interface Grant {
  /** Identifies the caller; safe to log. */
  readonly name: string;
  readonly scopes: ReadonlySet<Scope>;
  /**
   * The service that the caller belongs to, which takes one turn for all its callers. Absent for a
   * caller that is its own service.
   */
  readonly service?: string | undefined;
  /** Set for a customer-bound caller: the customer's id in the merchant platform. */
  readonly customer?: string;
  /** Set for a caller with a watch token, who may watch this payment or payout and nothing else. */
  readonly watch?: { readonly kind: Kind; readonly externalId: string };
  /** When the caller's token expires, in milliseconds since the epoch: streams end then. */
  readonly expiresAtMs?: number;
  /** Aborts with a GatewayError UNAUTHENTICATED when the credentials are withdrawn: streams end. */
  readonly revoked?: AbortSignal;
}

/** What credentials allow, before a merchant account is picked. */
export interface Credential extends Grant {
  /** Merchant accounts that the credential is limited to; undefined: it names none. */
  readonly merchants?: ReadonlySet<string> | undefined;
}

/** The caller of a request, identified once per request for both edges. */
export interface Caller extends Grant {
  /** The merchant account that the call is for. */
  readonly account: string;
  /** `X-CUSTOMER-AUTH` as the caller sent it: the upstream identifies the customer by it alone. */
  readonly customerToken?: string;
}

/** The error for a token that has expired: before a call, or during a stream or on an open socket. */
export function tokenExpired(): GatewayError {
  return unauthenticated("the token has expired", { reason: "TOKEN_EXPIRED" });
}

/** What a caller can send as `Authorization: Bearer …`: visible ASCII characters. */
export const bearerText = /^[\x21-\x7e]+$/;
