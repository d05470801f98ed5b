import type { KindName } from "../src/model/kinds.ts";

/** An event as the list shows it. */
export type EventRow = ReturnType<typeof rowOf>;

/** The state of a payment or payout, or the outcome of a call whose answer was lost. */
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

/** The page's subscription. It selects no secret fields. */
export const eventsQuery = `subscription Console($after: String) {
  events(after: $after) {
    __typename cursor kind externalId source receivedAt final callOutcome
    ... on PaymentEvent {
      state paymentId
      payment {
        operation action { value } details { status statusCode amount currency }
        unrecognized { value }
      }
    }
    ... on PayoutEvent {
      payoutState: state transactionId
      payout { status statusCode originalAmount currency unrecognized { value } }
    }
  }
}`;

/** The data of one result of `eventsQuery`. */
export interface EventData {
  readonly events: {
    readonly cursor: string;
    readonly kind: "PAYMENT" | "PAYOUT";
    readonly externalId: string;
    readonly source: string;
    readonly receivedAt: string;
    readonly final: boolean;
    /** The state of the payment after the event; of a payout it is `payoutState`. */
    readonly state?: string | null;
    readonly payoutState?: string | null;
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
      readonly unrecognized: readonly { readonly value: string }[];
    } | null;
    readonly transactionId?: string | null;
    readonly payout?: {
      readonly status: string | null;
      readonly statusCode: string | null;
      readonly originalAmount: string | null;
      readonly currency: string | null;
      readonly unrecognized: readonly { readonly value: string }[];
    } | null;
  };
}

export function rowOf({ events: event }: EventData) {
  const { payment, payout } = event;
  const details = payment?.details;
  const state = shownStateOf(event.state ?? event.payoutState);
  return {
    cursor: event.cursor,
    kind: event.kind.toLowerCase() as KindName,
    externalId: event.externalId,
    source: event.source,
    receivedAtMs: Date.parse(event.receivedAt),
    final: event.final,
    subjectId: event.paymentId ?? event.transactionId ?? undefined,
    operation: payment?.operation?.toLowerCase() ?? undefined,
    /** What the service said in words that the gateway does not know, such as `chargeback`. */
    unrecognized: ((payment ?? payout)?.unrecognized ?? []).map(({ value }) => value),
    /** The outcome of a call if the event reports one, else `state`. */
    shownState: event.callOutcome ? (event.callOutcome.toLowerCase() as ShownState) : state,
    /** The state of the payment or payout after the event. */
    state: event.callOutcome === "NEEDS_OPERATOR" && state === "unknown" ? "needs_operator" : state,
    statusCode: details?.statusCode ?? payout?.statusCode ?? undefined,
    amount: details?.amount ?? payout?.originalAmount ?? undefined,
    currency: details?.currency ?? payout?.currency ?? undefined,
    /** URL of the page that the customer has to open. */
    actionUrl: webAddress(payment?.action?.value),
  };
}

/** The gateway's `state` of a payment or payout; `init` if there is none. */
export function shownStateOf(state: string | null | undefined): ShownState {
  return (state?.toLowerCase() as ShownState | undefined) ?? "init";
}

/** The text if it is an http or https URL, else undefined: only such texts may become links. */
export function webAddress(text: string | null | undefined): string | undefined {
  const { protocol } = (text && URL.parse(text)) || {};
  return protocol === "http:" || protocol === "https:" ? (text ?? undefined) : undefined;
}
