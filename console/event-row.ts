import type { KindName } from "../src/model/kinds.ts";

/** An event as the list shows it. */
export interface EventRow {
  readonly cursor: string;
  readonly kind: KindName;
  readonly externalId: string;
  readonly source: string;
  readonly receivedAtMs: number;
  readonly final: boolean;
  readonly subjectId: string | undefined;
  readonly operation: string | undefined;
  /** What the event says: the state after it, or what became of a call. */
  readonly shownState: ShownState;
  /** How the payment or payout stands after it. */
  readonly state: ShownState;
  readonly statusCode: string | undefined;
  readonly amount: string | undefined;
  readonly currency: string | undefined;
  /** Page to which the customer has to go. */
  readonly actionUrl: string | undefined;
}

/** How a payment or payout stands, or a call whose answer was lost. */
export type ShownState =
  | "paid"
  | "authorized"
  | "failed"
  | "cancelled"
  | "refunded"
  | "partially_refunded"
  | "pending"
  | "init"
  | "unknown"
  | "settled"
  | "not_done"
  | "needs_operator";

/** The subscription behind the page. It asks for nothing that is secret. */
export const eventsQuery = `subscription Console($after: String) {
  events(after: $after) {
    __typename cursor kind externalId source receivedAt final callOutcome state
    ... on PaymentEvent {
      paymentId
      payment { operation action { value } details { status statusCode amount currency } }
    }
    ... on PayoutEvent {
      transactionId
      payout { status statusCode originalAmount currency }
    }
  }
}`;

/** As that subscription delivers it. */
export interface EventData {
  readonly events: {
    readonly cursor: string;
    readonly kind: "PAYMENT" | "PAYOUT";
    readonly externalId: string;
    readonly source: string;
    readonly receivedAt: string;
    readonly final: boolean;
    /** Is it paid? */
    readonly state: string | null;
    readonly callOutcome: "UNKNOWN" | "SETTLED" | "NOT_DONE" | "NEEDS_OPERATOR" | null;
    readonly paymentId?: string | null;
    readonly payment?: {
      readonly operation: string | null;
      readonly action: { readonly value: string | null } | null;
      readonly details: {
        readonly status: string | null;
        readonly statusCode: string | null;
        readonly amount: string | null;
        readonly currency: string | null;
      } | null;
    } | null;
    readonly transactionId?: string | null;
    readonly payout?: {
      readonly status: string | null;
      readonly statusCode: string | null;
      readonly originalAmount: string | null;
      readonly currency: string | null;
    } | null;
  };
}

export function rowOf({ events: event }: EventData): EventRow {
  const { payment, payout } = event;
  const details = payment?.details;
  const state = shownStateOf(event.state);
  return {
    cursor: event.cursor,
    kind: event.kind.toLowerCase() as KindName,
    externalId: event.externalId,
    source: event.source,
    receivedAtMs: Date.parse(event.receivedAt),
    final: event.final,
    subjectId: event.paymentId ?? event.transactionId ?? undefined,
    operation: payment?.operation?.toLowerCase() ?? undefined,
    shownState: event.callOutcome ? (event.callOutcome.toLowerCase() as ShownState) : state,
    state: event.callOutcome === "NEEDS_OPERATOR" && state === "unknown" ? "needs_operator" : state,
    statusCode: details?.statusCode ?? payout?.statusCode ?? undefined,
    amount: details?.amount ?? payout?.originalAmount ?? undefined,
    currency: details?.currency ?? payout?.currency ?? undefined,
    actionUrl: webAddress(payment?.action?.value),
  };
}

/** The gateway's state of a payment or payout, which it alone works out. */
export function shownStateOf(state: string | null | undefined): ShownState {
  return (state?.toLowerCase() as ShownState | undefined) ?? "init";
}

/** What the service names may be anything; only a web address becomes a link. */
export function webAddress(text: string | null | undefined): string | undefined {
  const { protocol } = (text && URL.parse(text)) || {};
  return protocol === "http:" || protocol === "https:" ? (text ?? undefined) : undefined;
}
