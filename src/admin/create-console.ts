import type { IncomingMessage } from "node:http";
import { hostname } from "node:os";
import type { EventLog } from "../events/log.ts";
import type { GraphqlServer } from "../graphql/server.ts";
import { isCrossOrigin } from "../graphql/transport/browser-origin.ts";
import type { IntentStore } from "../intents/store.ts";
import type { TokenBucket } from "../ratelimit/bucket.ts";
import type { SandboxActions } from "./api.ts";
import type { BudgetStatus, ReconcilerSettings, Replica } from "./console-api.ts";
import { letterOf, lettersOf } from "./dead-letter-view.ts";
import { historyOf } from "./history.ts";
import type { OperatorIdentity } from "./identify-operator.ts";
import type { ActivityWindows } from "./observe.ts";
import { openCallsOf } from "./open-calls.ts";
import { loadPage } from "./page.ts";
import type { Console } from "./server.ts";

export interface ConsoleOptions {
  readonly accounts: ReadonlyMap<string, { readonly bucket: TokenBucket }>;
  readonly activityWindows: ActivityWindows;
  readonly log: EventLog;
  readonly intents: IntentStore;
  readonly operators: OperatorIdentity;
  /** Whether operators show credentials. */
  readonly authenticated: boolean;
  /** Answers for callers that `operators` identifies. */
  readonly graphql: GraphqlServer;
  readonly notReady: () => readonly string[];
  /** RATE_LIMIT_RESERVE. */
  readonly reserve: number;
  readonly sourceOf: (account: string) => BudgetStatus["source"];
  readonly reconciler: ReconcilerSettings;
  /** In sandbox mode. */
  readonly sandbox?: { readonly url: string; readonly sandboxActions: SandboxActions };
  readonly onFailure: (error: unknown) => void;
}

/** How many events a page that was just opened shows. */
const eventsAtFirst = 200;

/** What stands behind the operator's page. `close` stops what it does by itself. */
export function createConsole(options: ConsoleOptions): Console & { close(): void } {
  const { accounts, activityWindows, log, intents, operators, graphql, sandbox } = options;
  const { authenticated, reconciler } = options;
  const replica: Replica = { host: hostname(), pid: process.pid, startedAtMs: startedAtMs() };
  const watched = new Map<string, number>();

  function budgetOf(account: string) {
    const bucket = accounts.get(account)?.bucket;
    if (!bucket) throw new Error(`no such merchant account: ${account}`);
    return bucket.status();
  }

  function sample(account: string) {
    const activity = activityWindows.get(account);
    const budget = budgetOf(account);
    activity?.budget(budget.remaining);
    return budget;
  }

  // A budget that nobody spends and nobody looks at is not asked about.
  const sampling = setInterval(() => {
    for (const [account, activity] of activityWindows) {
      const sinceMs = Date.now() - (watched.get(account) ?? -Infinity);
      if (activity.busy || sinceMs < watchedMs) sample(account);
    }
  }, 1_000).unref();

  const newestLetters = shared((account) => lettersOf(log, account));

  return {
    page: loadPage(),
    isCrossOrigin: (request) => isCrossOrigin(originOf(request), []),
    operatorOf: operators.operatorOf,
    graphql: graphql.handle,
    onFailure: options.onFailure,
    close: () => clearInterval(sampling),
    data: {
      session: (operator) => ({
        accounts: operator.accounts,
        authenticated,
        durable: log.durable,
        reconciler,
        ...(sandbox && { sandboxUrl: sandbox.url }),
      }),
      async status(account) {
        const activity = activityWindows.get(account);
        if (!activity) throw new Error(`no such merchant account: ${account}`);
        watched.set(account, Date.now());
        const { limit, remaining, resetSeconds } = sample(account);
        const { reserve, notReady, sourceOf } = options;
        const source = sourceOf(account);
        const history = activity.budgetHistory;
        return {
          replica,
          nowMs: Date.now(),
          notReady: notReady(),
          budget: { limit, remaining, resetSeconds, reserve, source, history },
          upstream: activity.upstream,
          callbacks: activity.callbacks,
          reconciled: activity.reconciled,
        };
      },
      async start(account) {
        return { after: await log.cursorBefore(account, eventsAtFirst) };
      },
      async history(account, kind, externalId) {
        return { events: await historyOf(log, account, kind, externalId) };
      },
      calls: shared((account) => openCallsOf(intents, account)),
      letters: (account, behind) =>
        behind === undefined ? newestLetters(account) : lettersOf(log, account, behind),
      letter: (account, id) => letterOf(log, account, id),
      ...(sandbox && { sandboxActions: sandbox.sandboxActions }),
    },
  };
}

/** How long after it was last asked for a budget is sampled. */
const watchedMs = 15_000;

function startedAtMs(): number {
  return Math.round(Date.now() - process.uptime() * 1_000);
}

function originOf({ headers }: IncomingMessage) {
  return {
    origin: headers.origin,
    host: headers.host,
    secFetchSite: headers["sec-fetch-site"]?.toString(),
  };
}

/** Whoever asks for the same while it is being found out gets the same answer. */
function shared<T>(find: (account: string) => Promise<T>): (account: string) => Promise<T> {
  const underWay = new Map<string, Promise<T>>();
  return (account) => {
    const found = underWay.get(account) ?? find(account).finally(() => underWay.delete(account));
    underWay.set(account, found);
    return found;
  };
}
