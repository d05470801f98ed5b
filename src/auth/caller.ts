import type { EventKind } from "../gen/payments/v1/event_pb.ts";

/** What a caller may do (contract, section 6). */
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
] as const;

export type Scope = (typeof scopes)[number];

/** Who is calling, read once per request for both edges. */
export interface Caller {
  /** Fit for logs. */
  readonly name: string;
  /** The merchant account that the call is for. */
  readonly account: string;
  readonly scopes: ReadonlySet<Scope>;
  /** `X-CUSTOMER-AUTH` as the caller sent it: alone tells the upstream who the customer is. */
  readonly customerToken?: string;
  /** Set for the holder of a watch token: this one payment or payout may be watched, nothing else. */
  readonly watch?: { readonly kind: EventKind; readonly externalId: string };
  /** When the caller's token expires, in milliseconds since the epoch: streams end then. */
  readonly expiresAtMs?: number;
}
