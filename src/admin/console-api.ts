import * as z from "zod";
import { type KindName, kindNames, type Resource } from "../model/kinds.ts";

/**
 * The JSON that the admin listener serves to the console's page at `/api/...`; the page's sources
 * import these types too. What is undefined is not sent. Times are milliseconds since the epoch.
 * Only that page and the command `story` may rely on them, since they change with it; scripts use
 * `/metrics` and `/dead-letters`, whose JSON is the last here.
 */

/** `GET /api/session`: what the operator may see, and how the gateway is configured. */
export interface Session {
  /** Merchant accounts that the operator may see. */
  readonly accounts: readonly string[];
  /** Whether the admin listener requires credentials. */
  readonly authenticated: boolean;
  /** Other pages; each is absent where there is none. */
  readonly links: {
    readonly graphiql?: string | undefined;
    /** The demo shop, and the emulator's own page, in sandbox mode. */
    readonly demo?: string | undefined;
    readonly ledger?: string | undefined;
  };
  /** Whether events outlive this process. */
  readonly durable: boolean;
  readonly reconciler: ReconcilerSettings;
}

export interface ReconcilerSettings {
  /** Time after which an unknown outcome is first looked up; absent: reconciliation is off. */
  readonly afterMs?: number | undefined;
  readonly giveUpMs: number;
}

/** `GET /api/status?account=`: this replica's state, from its own memory. */
export interface Status {
  readonly replica: Replica;
  /** On this replica's clock. */
  readonly nowMs: number;
  /** Why this replica is not ready for traffic; empty when it is. */
  readonly notReady: readonly string[];
  readonly budget: BudgetStatus;
  readonly upstream: UpstreamStatus;
  /** Five minutes in steps of 5 seconds, the current step last. */
  readonly history: readonly StepFigures[];
  /** Callbacks of the last five minutes, by verdict. */
  readonly callbacks: Readonly<Record<string, number>>;
}

export interface Replica {
  readonly host: string;
  readonly pid: number;
  readonly startedAtMs: number;
}

export interface BudgetStatus {
  /** Requests a second. */
  readonly limit: number;
  readonly remaining: number;
  readonly resetSeconds: number;
  /** Share of the budget that only calls that move money may use. */
  readonly reserve: number;
  /**
   * `shared`: one budget of all replicas in Redis; `share`: this replica's part of it while Redis
   * is away; `own`: this process's budget, without Redis.
   */
  readonly source: "shared" | "share" | "own";
  /** The ten callers with the most calls in the last five minutes, the busiest first. */
  readonly callers: readonly CallerWaits[];
}

/** How long one caller's calls waited for tokens on this replica. */
export interface CallerWaits {
  /** An API key's name, `jwt:` and a subject, or `customer:` and a digest. */
  readonly caller: string;
  readonly calls: number;
  /** Calls that got no token. */
  readonly refused: number;
  /** Of the other calls. */
  readonly longestWaitMs: number;
}

export interface UpstreamStatus {
  readonly health: UpstreamHealth;
  readonly breakers: { readonly money: BreakerState; readonly other: BreakerState };
  /** Calls of the last minute. */
  readonly minute: CallFigures;
}

/** `refused`: the service rejects the merchant's credentials. */
export type UpstreamHealth = "idle" | "healthy" | "degraded" | "failing" | "refused";

export type BreakerState = "closed" | "open";

export interface CallFigures {
  /** Requests that this replica sent. */
  readonly calls: number;
  /** Calls without an answer, with a 5xx, or with an answer that was not understood. */
  readonly failed: number;
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
}

export interface StepFigures extends CallFigures {
  /** Fewest tokens of the budget that were left; null while no call was sent and no page showed it. */
  readonly remaining: number | null;
}

/** `GET /api/start?account=`: the cursor after which a newly opened page streams events. */
export interface Start {
  readonly after: string;
}

/** `GET /api/history?account=&kind=&external_id=`: what is known of a payment or payout. */
export interface History {
  readonly nowMs: number;
  /** Such as `paid`; absent when nothing is known of it. */
  readonly state?: string | undefined;
  readonly needsOperator: boolean;
  /** In the order in which they became known; the newest 100. */
  readonly operations: readonly OperationState[];
  /** Its calls that are not settled. */
  readonly calls: readonly OpenCall[];
  /** The newest 100, the newest first. */
  readonly events: readonly HistoryEvent[];
}

/** How far an operation of a payment or payout has come. */
export interface OperationState {
  /** Such as `payment`, `refund` or `payout`. */
  readonly operation: string;
  /** payment_id or transaction_id. */
  readonly subjectId: string;
  readonly operationId?: string | undefined;
  readonly status?: string | undefined;
  readonly statusCode?: string | undefined;
  readonly amount?: string | undefined;
  readonly currency?: string | undefined;
  readonly atMs: number;
}

export interface HistoryEvent {
  readonly cursor: string;
  readonly receivedAtMs: number;
  /** Trace in which it became known; absent when nothing is traced. */
  readonly traceId?: string | undefined;
  /** `CALLBACK`, `RESPONSE` or `RECONCILIATION`. */
  readonly source: string;
  readonly final: boolean;
  /** Such as `UNKNOWN`, for an event about a call; absent when it holds a payment or payout. */
  readonly callOutcome?: string | undefined;
  /** payment_id or transaction_id. */
  readonly subjectId?: string | undefined;
  /** Such as `payment` or `refund`; only for payments. */
  readonly operation?: string | undefined;
  /** State of the payment or payout after this event, such as `paid`; absent when not known. */
  readonly state?: string | undefined;
  /** Status of the operation that the event is about. */
  readonly status?: string | undefined;
  readonly statusCode?: string | undefined;
  readonly amount?: string | undefined;
  readonly currency?: string | undefined;
  /** What the service said in words that the gateway does not know; absent when there are none. */
  readonly unrecognized?: readonly { readonly field: string; readonly value: string }[] | undefined;
  /** The payment or payout as indented REST JSON, secrets masked; absent when there is none. */
  readonly message?: string | undefined;
}

/** `GET /api/calls?account=`: calls that move money and are not settled. */
export interface Calls {
  readonly nowMs: number;
  readonly total: number;
  readonly calls: readonly OpenCall[];
}

export interface OpenCall {
  readonly id: string;
  readonly method: string;
  readonly kind: KindName;
  readonly externalId: string;
  readonly state: "unknown" | "pending";
  readonly startedAtMs: number;
  /** How often it was looked up. */
  readonly checks: number;
  /** Consecutive look-ups in which the service did not know the call. */
  readonly notFound: number;
  /** Time of the next look-up; absent when no more follow. */
  readonly nextLookMs?: number | undefined;
  readonly needsOperator: boolean;
}

/** `POST /api/look-up` and `POST /api/resend-callback`: each costs a request of the rate budget. */
export const paymentAction = z.strictObject({
  account: z.string(),
  kind: z.enum(kindNames),
  externalId: z.string().min(1).max(1_000),
});

/** `scheduled`: the reconciler looks now; `asked`: the service took the request. */
export type PaymentActionResult =
  | { readonly kind: "scheduled" | "asked" }
  | { readonly kind: "refused"; readonly message: string };

/** `GET /api/sandbox`: the scenarios that magic cards and amounts trigger. */
export interface Scenarios {
  readonly scenarios: readonly ScenarioInfo[];
}

export interface ScenarioInfo {
  readonly name: string;
  readonly summary: string;
  readonly outcome: string;
  readonly challenge: boolean;
  readonly settles: "now" | "later";
  readonly callbacks: string;
  readonly answer: string;
  /** Last four digits of the card that triggers it. */
  readonly card: string;
  /** Cents of an amount that trigger it; absent when no amount does. */
  readonly cents?: string | undefined;
}

const text = z.string().min(1).max(255);

/** `POST /api/sandbox/payments` and `/api/sandbox/payouts` */
export const sandboxOrder = z.strictObject({
  scenario: text,
  externalId: text,
  /** By the scenario's card, or by the amount's cents with an ordinary card (payouts: in cash). */
  by: z.enum(["card", "amount"]),
});
export type SandboxOrder = z.infer<typeof sandboxOrder>;

/** What a caller of the gateway would have received for the order. */
export type SandboxResult =
  | {
      readonly kind: "answered";
      readonly status?: string | undefined;
      readonly statusCode?: string | undefined;
      /** Page to which the customer has to go. */
      readonly actionUrl?: string | undefined;
    }
  | {
      readonly kind: "refused";
      readonly code: string;
      readonly message: string;
      readonly upstreamCode?: string | undefined;
    }
  | { readonly kind: "unknown"; readonly message: string };

/** A callback that was not understood, as operators see it: on the console and the command line. */
export interface DeadLetterView {
  readonly account: string;
  readonly id: string;
  readonly resource: Resource;
  readonly reason: string;
  /** RFC 3339. */
  readonly receivedAt: string;
  /** Length of the body; absent when the letter is locked. */
  readonly bytes?: number;
  /** The body was sealed with a password that is no longer accepted. */
  readonly locked?: true;
}

/** A single dead letter. */
export interface DeadLetterDetails extends DeadLetterView {
  /** The body with secrets and card numbers masked; absent when it is not UTF-8 text, or locked. */
  readonly text?: string | undefined;
  /** The body as it was received, in base64: it may hold card data. Absent with `?raw=false`. */
  readonly body?: string | undefined;
}

/** `GET /dead-letters`. */
export interface DeadLetterPage {
  readonly dead_letters: readonly DeadLetterView[];
  /** Number of dead letters of the account. */
  readonly total: number;
  /** The `cursor` of the next page; absent on the last page. */
  readonly next_cursor?: string | undefined;
}

/** Body of every response that is not 2xx. */
export interface Refusal {
  readonly error: string;
  readonly reason?: string | undefined;
}
