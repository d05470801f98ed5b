import { hostname } from "node:os";
import * as z from "zod";
import { ofAccount } from "../errors.ts";
import type { Intent } from "../ledger/intents.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { kindNames, kinds } from "../model/kinds.ts";
import type { TokenBucket } from "../ratelimit/bucket.ts";
import type { Activities } from "./activity.ts";
import {
  type Calls,
  type History,
  type OpenCall,
  paymentAction,
  type Replica,
  type Session,
  type Start,
  type Status,
  sandboxOrder,
} from "./console-api.ts";
import { historyOf } from "./history.ts";
import {
  type AdminRequest,
  accountOf,
  type Operator,
  Refused,
  read,
  readQuery,
} from "./operator.ts";
import { docsPath } from "./page.ts";
import { createPaymentActions, type PaymentActionsOptions } from "./payment-actions.ts";
import type { SandboxActions } from "./sandbox-actions.ts";

export interface ConsoleOptions extends PaymentActionsOptions {
  readonly accounts: ReadonlyMap<string, { readonly bucket: TokenBucket }>;
  readonly activities: Activities;
  readonly ledger: Ledger;
  /** Whether operators need credentials. */
  readonly authenticated: boolean;
  readonly notReady: () => readonly string[];
  /** RATE_LIMIT_RESERVE. */
  readonly reserve: number;
  readonly links: () => Session["links"];
  /** Set in sandbox mode. */
  readonly sandbox: SandboxActions | undefined;
}

/**
 * What the operator's page shows and does: answers with the JSON of `console-api.ts` at `/api/...`,
 * with undefined for what does not exist. @throws Refused, GatewayError
 */
export function createConsole(options: ConsoleOptions) {
  const { accounts, activities, ledger, reconciler, sandbox } = options;
  const startedAtMs = Math.round(Date.now() - process.uptime() * 1_000);
  const replica: Replica = { host: hostname(), pid: process.pid, startedAtMs };

  async function status(account: string): Promise<Status> {
    const activity = activities.of(account);
    activity.sample();
    const { bucket } = ofAccount(accounts, account);
    const { limit, remaining, resetSeconds } = bucket.status();
    const { reserve, notReady } = options;
    const { budgetHistory: history, callers, upstream } = activity;
    return {
      replica,
      nowMs: Date.now(),
      notReady: notReady(),
      budget: {
        ...{ limit, remaining, resetSeconds, reserve, source: bucket.source },
        ...{ history, callers },
      },
      ...{ upstream, callbacks: activities.callbacks(account) },
    };
  }

  async function history(account: string, query: URLSearchParams): Promise<History> {
    const { kind, external_id: externalId } = readQuery(historyQuery, query);
    const known = await historyOf(ledger, account, kind, externalId);
    return { ...known, calls: known.calls.map(openCall) };
  }

  const openCall = (intent: Intent) => openCallView(intent, reconciler.afterMs !== undefined);

  /** Calls that move money whose outcome is unknown, or whose payment is pending. */
  async function calls(account: string): Promise<Calls> {
    const { intents: open, total } = await ledger.unsettled(account, maxOpenCalls);
    return { nowMs: Date.now(), total, calls: open.map(openCall) };
  }

  type View = (operator: Operator, query: URLSearchParams) => unknown;
  const ofOne = (view: (account: string, query: URLSearchParams) => unknown): View => {
    return (operator, query) => view(accountOf(operator, query.get("account")), query);
  };
  /** `GET` of these paths. */
  const views = new Map<string, View>([
    [
      "/api/session",
      ({ accounts }): Session => ({
        accounts,
        authenticated: options.authenticated,
        durable: ledger.durable,
        reconciler,
        links: { ...options.links(), docs: docsPath },
      }),
    ],
    ["/api/status", ofOne(status)],
    [
      "/api/start",
      ofOne(async (account): Promise<Start> => {
        return { after: await ledger.cursorBefore(account, eventsAtFirst) };
      }),
    ],
    ["/api/history", ofOne(history)],
    ["/api/calls", ofOne(calls)],
  ]);

  type Action = (operator: Operator, body: unknown) => unknown;
  const { lookUp, resendCallback } = createPaymentActions(options);
  const about = (operator: Operator, body: unknown) => {
    const asked = read(paymentAction, body);
    return { ...asked, account: accountOf(operator, asked.account) };
  };
  /** `POST` of these paths. */
  const actions = new Map<string, Action>([
    ["/api/look-up", (operator, body) => lookUp(operator, about(operator, body))],
    ["/api/resend-callback", (operator, body) => resendCallback(operator, about(operator, body))],
  ]);

  if (sandbox) {
    const { scenarios, pay, payOut } = sandbox;
    views.set("/api/sandbox", () => scenarios);
    actions.set("/api/sandbox/payments", (_, body) => pay(read(sandboxOrder, body)));
    actions.set("/api/sandbox/payouts", (_, body) => payOut(read(sandboxOrder, body)));
  }

  return async (operator: Operator, { method, path, query, body }: AdminRequest) => {
    const act = actions.get(path);
    if (method === "POST" && act) return act(operator, await body());
    if (method !== "GET") throw new Refused(405, "method not allowed");
    return views.get(path)?.(operator, query);
  };
}

const historyQuery = z.object({
  kind: z.enum(kindNames),
  external_id: z.string().min(1).max(1_000),
});

function openCallView(intent: Intent, isReconciled: boolean): OpenCall {
  const { id, method, kind, externalId, state, startedAtMs, checks, notFound, needsOperator } =
    intent;
  return {
    ...{ id, method, externalId, startedAtMs, checks, notFound, needsOperator },
    kind: kinds[kind].name,
    // A `running` call is listed only after its lease ended: its replica is gone.
    state: state === "pending" ? "pending" : "unknown",
    nextLookMs: isReconciled && !needsOperator ? intent.dueMs : undefined,
  };
}

/** Number of events that a newly opened page shows. */
const eventsAtFirst = 200;
const maxOpenCalls = 100;
