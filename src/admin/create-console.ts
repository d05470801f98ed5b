import { hostname } from "node:os";
import type { Core } from "../core/core.ts";
import { ofAccount } from "../errors.ts";
import type { Intent, IntentStore } from "../ledger/intents.ts";
import type { EventLog } from "../ledger/log.ts";
import { type KindName, kinds } from "../model/kinds.ts";
import type { TokenBucket } from "../ratelimit/bucket.ts";
import type { Report } from "../report.ts";
import type { Activities } from "./activity.ts";
import type {
  BudgetStatus,
  Calls,
  History,
  OpenCall,
  ReconcilerSettings,
  Replica,
  Session,
  Start,
  Status,
} from "./console-api.ts";
import type { DeadLetters } from "./dead-letters.ts";
import { docsPath } from "./docs.ts";
import { historyOf } from "./history.ts";
import { type KnownListQuery, knownListOf } from "./known-list.ts";
import type { Operator } from "./operator.ts";
import { createPaymentActions } from "./payment-actions.ts";
import type { SandboxActions } from "./sandbox-actions.ts";

export interface ConsoleOptions {
  readonly accounts: ReadonlyMap<string, { readonly bucket: TokenBucket }>;
  readonly activities: Activities;
  readonly log: EventLog;
  readonly intents: IntentStore;
  readonly deadLetters: DeadLetters;
  /** Whether operators need credentials. */
  readonly authenticated: boolean;
  readonly notReady: () => readonly string[];
  /** RATE_LIMIT_RESERVE. */
  readonly reserve: number;
  readonly sourceOf: (account: string) => BudgetStatus["source"];
  readonly reconciler: ReconcilerSettings;
  readonly core: Core;
  readonly report: Report;
  readonly links: () => Session["links"];
  /** Set in sandbox mode. */
  readonly sandboxActions?: SandboxActions;
}

/** Number of events that a newly opened page shows. */
const eventsAtFirst = 200;

/** What the console shows, by account; see `console-api.ts`. */
export type ConsoleData = ReturnType<typeof createConsole>["data"];

/** The data and actions of the operator's page. `close` stops sampling the rate budgets. */
export function createConsole(options: ConsoleOptions) {
  const { accounts, activities, log, intents, sandboxActions } = options;
  const { authenticated, reconciler, deadLetters, core, report } = options;
  const replica: Replica = { host: hostname(), pid: process.pid, startedAtMs: startedAtMs() };
  const watched = new Map<string, number>();

  function sample(account: string) {
    const budget = ofAccount(accounts, account).bucket.status();
    activities.get(account)?.budget(budget.remaining);
    return budget;
  }

  const sampling = setInterval(() => {
    for (const [account, activity] of activities) {
      activity.tick();
      // A budget that no call spends and no page shows is not sampled.
      const sinceMs = Date.now() - (watched.get(account) ?? -Infinity);
      if (activity.busy || sinceMs < watchedMs) sample(account);
    }
  }, 1_000).unref();

  const listed = (account: string, cursor?: string) =>
    deadLetters.list({ accounts: [account], limit: lettersInPage, order: "newest", cursor });
  const newestLetters = shared((account) => listed(account));

  const unsettled = shared((account) => intents.unsettled(account, maxInspected));
  const isAbout = (kind: KindName, externalId: string) => (intent: Intent) =>
    kinds[intent.kind].name === kind && intent.externalId === externalId;

  return {
    close: () => clearInterval(sampling),
    data: {
      session: (operator: Operator): Session => ({
        accounts: operator.accounts,
        authenticated,
        durable: log.durable,
        reconciler,
        links: { ...options.links(), ...(docsPath !== undefined && { docs: docsPath }) },
      }),
      async status(account: string): Promise<Status> {
        const activity = ofAccount(activities, account);
        watched.set(account, Date.now());
        const { limit, remaining, resetSeconds } = sample(account);
        const { reserve, notReady, sourceOf } = options;
        const source = sourceOf(account);
        const { budgetHistory: history, callers } = activity;
        return {
          replica,
          nowMs: Date.now(),
          notReady: notReady(),
          budget: { limit, remaining, resetSeconds, reserve, source, history, callers },
          upstream: activity.upstream,
          callbacks: activity.callbacks,
          reconciled: activity.reconciled,
        };
      },
      async start(account: string): Promise<Start> {
        return { after: await log.cursorBefore(account, eventsAtFirst) };
      },
      async history(account: string, kind: KindName, externalId: string): Promise<History> {
        const [history, open] = await Promise.all([
          historyOf({ log, intents }, account, kind, externalId),
          unsettled(account),
        ]);
        const calls = open.intents.filter(isAbout(kind, externalId));
        return { ...history, calls: calls.map(openCallView) };
      },
      /** Calls that move money whose outcome is unknown, or whose payment is pending. */
      async calls(account: string): Promise<Calls> {
        const { intents: open, total } = await unsettled(account);
        const calls = open.slice(0, maxOpenCalls).map(openCallView);
        return { nowMs: Date.now(), total, calls };
      },
      list: (query: KnownListQuery) => knownListOf(core, query),
      ...createPaymentActions({
        ...{ core, intents, report, reconciles: reconciler.afterMs !== undefined },
        async openCalls({ account, kind, externalId }) {
          return (await unsettled(account)).intents.filter(isAbout(kind, externalId));
        },
      }),
      /** The newest dead letters, or those after a cursor. */
      deadLetters: (account: string, cursor?: string) =>
        cursor === undefined ? newestLetters(account) : listed(account, cursor),
      /** One dead letter with its masked text, without its raw body. */
      async deadLetter(account: string, id: string) {
        const found = await deadLetters.find(account, id);
        if (!found) return undefined;
        const { body, text, ...view } = found;
        return { ...view, ...(text !== undefined && { text: shortened(text) }) };
      },
      ...(sandboxActions && { sandboxActions }),
    },
  };
}

function openCallView(intent: Intent): OpenCall {
  const { id, method, kind, externalId, state, startedAtMs, checks, notFound } = intent;
  const { needsOperator, dueMs } = intent;
  return {
    ...{ id, method, externalId, startedAtMs, checks, notFound, needsOperator },
    kind: kinds[kind].name,
    // A `running` call is listed only after its lease ended: its replica is gone.
    state: state === "pending" ? "pending" : "unknown",
    ...(!needsOperator && { nextLookMs: dueMs }),
  };
}

const maxOpenCalls = 100;
/** How many open calls are searched for those of one payment or payout. */
const maxInspected = 2_000;
const lettersInPage = 50;
const maxTextLength = 64 * 1024;

function shortened(text: string): string {
  return text.length > maxTextLength ? `${text.slice(0, maxTextLength)}\n…` : text;
}

/** How long a budget is sampled after a page last requested the account's status. */
const watchedMs = 15_000;

function startedAtMs(): number {
  return Math.round(Date.now() - process.uptime() * 1_000);
}

/** Concurrent requests for the same account share one result. */
function shared<T>(find: (account: string) => Promise<T>): (account: string) => Promise<T> {
  const underWay = new Map<string, Promise<T>>();
  return (account) => {
    const found = underWay.get(account) ?? find(account).finally(() => underWay.delete(account));
    underWay.set(account, found);
    return found;
  };
}
