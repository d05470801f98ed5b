import type { KindName } from "../model/kinds.ts";
/**
 * What the console's page asks the admin listener for: the shapes of `/api/...`, which the page's
 * sources import too. Instants are milliseconds since the epoch. They serve that page alone, and may
 * change with it; scripts read `/metrics` and `/dead-letters`.
 */

/** `GET /api/session`: who asks, and what there is. */
export interface Session {
  /** Merchant accounts that the operator may see. */
  readonly accounts: readonly string[];
  /** Whether credentials were asked for. */
  readonly authenticated: boolean;
  /** Address of the emulator's own page, in sandbox mode. */
  readonly sandboxUrl?: string;
  /** Whether events outlive this process. */
  readonly durable: boolean;
  readonly reconciler: ReconcilerSettings;
}

export interface ReconcilerSettings {
  /** When an unknown outcome is first looked up; absent: never. */
  readonly afterMs?: number;
  readonly giveUpMs: number;
}

/** `GET /api/status?account=`: what this replica knows, without asking anybody. */
export interface Status {
  readonly replica: Replica;
  /** On this replica's clock. */
  readonly nowMs: number;
  /** Why no traffic should come; empty when it may. */
  readonly notReady: readonly string[];
  readonly budget: BudgetStatus;
  readonly upstream: UpstreamStatus;
  readonly callbacks: CallbackStatus;
  /** What this replica's reconciler did since its start. */
  readonly reconciled: ReconciledStatus;
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
  /** Share of it that only calls that move money may use. */
  readonly reserve: number;
  /** The budget of all replicas in Redis, this replica's share while Redis is away, or its own. */
  readonly source: "shared" | "share" | "own";
  /** One for each second, the present one last. */
  readonly history: readonly BudgetPoint[];
  /** The ten that asked most in the last five minutes, the busiest first. */
  readonly callers: readonly CallerWaits[];
}

/** How one caller fared at the budget, by this replica. */
export interface CallerWaits {
  /** An API key's name, `jwt:` and a subject, or `customer:` and a digest. */
  readonly caller: string;
  readonly calls: number;
  /** Those that got no token. */
  readonly refused: number;
  /** What 95% of the others waited at most; null without any. */
  readonly p95WaitMs: number | null;
}

export interface BudgetPoint {
  /** Tokens left; null while nothing was sent and nobody looked. */
  readonly remaining: number | null;
  /** Requests that this replica sent. */
  readonly sent: number;
}

export interface UpstreamStatus {
  readonly health: UpstreamHealth;
  readonly breakers: { readonly money: BreakerState; readonly other: BreakerState };
  /** Of the last minute. */
  readonly minute: CallFigures;
  /** The slowest twentieth of each five seconds, the present ones last. */
  readonly history: readonly LatencyPoint[];
  /** Of the last five minutes, the busiest first. */
  readonly endpoints: readonly (CallFigures & { readonly endpoint: string })[];
}

/** `refused`: the service does not take the merchant's credentials. */
export type UpstreamHealth = "idle" | "healthy" | "degraded" | "failing" | "refused";

export type BreakerState = "closed" | "halfOpen" | "open";

export interface CallFigures {
  readonly calls: number;
  /** No answer, an answer of 5xx, or one that was not understood. */
  readonly failed: number;
  /** Answers that said Too Many Requests. */
  readonly limited: number;
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
}

export interface LatencyPoint {
  readonly p95Ms: number | null;
  readonly calls: number;
  readonly failed: number;
}

export interface CallbackStatus {
  /** By verdict, of the last five minutes. */
  readonly recent: Readonly<Record<string, number>>;
  /** By verdict, since this replica started. */
  readonly total: Readonly<Record<string, number>>;
  /** How many came in each five seconds, the present ones last. */
  readonly history: readonly number[];
}

export interface ReconciledStatus {
  /** By source. */
  readonly settled: Readonly<Record<string, number>>;
  /** By look-up method and outcome, such as `resend asked`. */
  readonly probes: Readonly<Record<string, number>>;
  readonly givenUp: number;
}

/** `GET /api/start?account=`: where the stream of events begins for a page that was just opened. */
export interface Start {
  readonly after: string;
}

/** `GET /api/history?account=&kind=&external_id=`: newest first. */
export interface History {
  readonly events: readonly HistoryEvent[];
}

export interface HistoryEvent {
  readonly cursor: string;
  readonly receivedAtMs: number;
  /** `CALLBACK`, `RESPONSE` or `RECONCILIATION`. */
  readonly source: string;
  readonly final: boolean;
  /** Such as `UNKNOWN`; absent when it is about a payment or payout. */
  readonly callOutcome?: string;
  /** payment_id or transaction_id. */
  readonly subjectId?: string;
  /** Such as `payment` or `refund`; of payments alone. */
  readonly operation?: string;
  /** Is it paid, after this event? Such as `paid`; absent when nothing is known. */
  readonly state?: string;
  /** Of the operation that the event is about. */
  readonly status?: string;
  readonly statusCode?: string;
  readonly amount?: string;
  readonly currency?: string;
  /** As the REST interface writes it, indented, its secrets masked; absent when there is none. */
  readonly message?: string;
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
  /** How often in a row the service did not know it. */
  readonly notFound: number;
  /** Absent when nobody looks any more. */
  readonly nextLookMs?: number;
  readonly needsOperator: boolean;
}

/** `GET /api/sandbox`: what the magic values make happen. */
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
  /** The amount's two digits that trigger it, where they do. */
  readonly cents?: string;
}

/** `POST /api/sandbox/payments` and `/api/sandbox/payouts` */
export interface SandboxOrder {
  readonly scenario: string;
  readonly amount: string;
  readonly currency: string;
  readonly externalId: string;
  /** By the scenario's card, or by any card and the amount's cents (of payouts: in cash). */
  readonly by: "card" | "amount";
}

/** What a caller of the gateway would have got for a trial. */
export type SandboxResult =
  | {
      readonly kind: "answered";
      readonly status?: string;
      readonly statusCode?: string;
      /** Page to which the customer has to go. */
      readonly actionUrl?: string;
    }
  | {
      readonly kind: "refused";
      readonly code: string;
      readonly message: string;
      readonly upstreamCode?: string;
    }
  | { readonly kind: "unknown"; readonly message: string };

/** `POST /api/sandbox/callbacks`: callbacks that do not go well. */
export interface SandboxCallback {
  readonly kind: "not_understood" | "forged";
}

export interface SandboxCallbackResult {
  /** HTTP status that the public listener answered. */
  readonly status: number;
}

/** Every answer but 2xx. */
export interface Refusal {
  readonly error: string;
  readonly reason?: string;
}
