import type { Kind } from "../model/kinds.ts";

/** What a caller may do. `admin` opens what the admin listener serves, and no call. */
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

const known: ReadonlySet<string> = new Set(scopes);

export function isScope(text: string): text is Scope {
  return known.has(text);
}

/** What somebody's credentials allow. */
export interface Grant {
  /** Tells callers apart; fit for logs. */
  readonly name: string;
  readonly scopes: ReadonlySet<Scope>;
  /** Set for a customer-bound caller: the customer's id in the merchant platform. */
  readonly customer?: string;
  /** Set for the holder of a watch token: this one payment or payout may be watched, nothing else. */
  readonly watch?: { readonly kind: Kind; readonly externalId: string };
  /** When the caller's token expires, in milliseconds since the epoch: streams end then. */
  readonly expiresAtMs?: number;
  /** Aborts, with a GatewayError UNAUTHENTICATED, when the credentials are withdrawn: streams end then. */
  readonly revoked?: AbortSignal;
}

/** What credentials allow, before a merchant account is picked. */
export interface Credential extends Grant {
  /** The merchant accounts that it is limited to; undefined: it does not say. */
  readonly merchants?: ReadonlySet<string>;
}

/** Who is calling, read once per request for both edges. */
export interface Caller extends Grant {
  /** The merchant account that the call is for. */
  readonly account: string;
  /** `X-CUSTOMER-AUTH` as the caller sent it: alone tells the upstream who the customer is. */
  readonly customerToken?: string;
}
