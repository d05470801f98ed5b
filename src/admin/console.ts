import { hostname } from "node:os";
import { create } from "@bufbuild/protobuf";
import * as z from "zod";
import type { Core } from "../core/core.ts";
import { GatewayError, ofAccount } from "../errors.ts";
import { ResendCallbackRequestSchema } from "../gen/payments/v1/payment_service_pb.ts";
import { GetPayoutRequestSchema } from "../gen/payments/v1/payout_service_pb.ts";
import type { Intent } from "../ledger/intents.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { kindNames, kinds } from "../model/kinds.ts";
import type { Report } from "../report.ts";
import type { Account } from "../upstream/upstream.ts";
import type { Activities } from "./activity.ts";
import {
  type Calls,
  type History,
  type OpenCall,
  type PaymentActionResult,
  paymentAction,
  type ReconcilerSettings,
  type Replica,
  type Session,
  type Start,
  type Status,
} from "./console-api.ts";
import { historyOf } from "./history.ts";
import {
  type AdminRequest,
  accountOf,
  callAs,
  json,
  type Routes,
  read,
  readQuery,
} from "./operator.ts";

export interface ConsoleOptions {
  readonly core: Core;
  readonly report: Report;
  readonly accounts: ReadonlyMap<string, Account>;
  readonly activities: Activities;
  readonly ledger: Ledger;
  /** Whether operators need credentials. */
  readonly authenticated: boolean;
  readonly notReady: () => readonly string[];
  /** RATE_LIMIT_RESERVE. */
  readonly reserve: number;
  readonly links: () => Session["links"];
  readonly reconciler: ReconcilerSettings;
}

/**
 * What the operator's page shows, and what an operator can ask the payments service about a payment
 * or payout, in the JSON of `console-api.ts`. No money moves.
 */
export function consoleRoutes(options: ConsoleOptions): Routes {
  const { accounts, activities, core, ledger, reconciler, report } = options;
  const startedAtMs = Math.round(Date.now() - process.uptime() * 1_000);
  const replica: Replica = { host: hostname(), pid: process.pid, startedAtMs };

  async function status(account: string): Promise<Status> {
    const { bucket } = ofAccount(accounts, account);
    const { limit, remaining, resetSeconds } = bucket.status();
    const { reserve, notReady } = options;
    const { callers, ...figures } = activities.of(account);
    return {
      ...{ replica, nowMs: Date.now(), notReady: notReady() },
      budget: { limit, remaining, resetSeconds, reserve, source: bucket.source, callers },
      ...figures,
    };
  }

  async function history(account: string, { query }: AdminRequest): Promise<History> {
    const { kind, external_id: externalId } = readQuery(historyQuery, query);
    const known = await historyOf(ledger, account, kind, externalId);
    return { ...known, calls: known.calls.map(openCall) };
  }

  const openCall = (intent: Intent) => openCallView(intent, reconciler.afterMs !== undefined);

  /** Calls that move money whose outcome is unknown, or whose payment is pending. */
  async function calls(account: string): Promise<Calls> {
    const open = await ledger.unsettled(account);
    const calls = open.slice(0, maxOpenCalls).map(openCall);
    return { nowMs: Date.now(), total: open.length, calls };
  }

  async function start(account: string): Promise<Start> {
    return { after: await ledger.cursorBefore(account, eventsAtFirst) };
  }

  function session({ operator: { accounts } }: AdminRequest): Session {
    const { authenticated, links } = options;
    return { accounts, authenticated, durable: ledger.durable, reconciler, links: links() };
  }

  async function about({ operator, body }: AdminRequest) {
    const asked = read(paymentAction, await body());
    return { ...asked, account: accountOf(operator, asked.account), operator: operator.name };
  }

  /**
   * Looks an open call up at once instead of later; a payout without an open call is read from the
   * service.
   */
  async function lookUp(request: AdminRequest): Promise<PaymentActionResult> {
    const action = await about(request);
    const { account, kind, externalId, operator } = action;
    report("operatorAsked", { action: "look up", ...action });
    const { calls } = await historyOf(ledger, account, kind, externalId);
    const next = calls.filter(
      ({ needsOperator }) => reconciler.afterMs !== undefined && !needsOperator,
    );
    for (const intent of next) {
      const { checks, notFound } = intent;
      await ledger.looked(account, intent, { checks, notFound, inMs: 0 });
    }
    if (next.length > 0) return { kind: "scheduled" };
    if (kind === "payment") {
      return { kind: "refused", message: "no look-up is due: ask for the callback again" };
    }
    const payout = create(GetPayoutRequestSchema, { externalId });
    const call = callAs(operator, account, ["payouts:read"]);
    return asked(() => core.getPayout(payout, call));
  }

  /** Asks the service to send the callback of a payment's latest operation again. */
  async function resendCallback(request: AdminRequest): Promise<PaymentActionResult> {
    const action = await about(request);
    const { account, kind, externalId, operator } = action;
    if (kind === "payout") {
      return { kind: "refused", message: "the service sends no callback of a payout again" };
    }
    report("operatorAsked", { action: "resend callback", ...action });
    const resend = create(ResendCallbackRequestSchema, { externalId });
    const call = callAs(operator, account, ["callbacks:resend"]);
    return asked(() => core.resendCallback(resend, call));
  }

  const ofOne = (view: (account: string, asked: AdminRequest) => unknown) =>
    json((asked) => view(accountOf(asked.operator, asked.query.get("account")), asked));
  return {
    "GET /api/session": json(session),
    "GET /api/status": ofOne(status),
    "GET /api/start": ofOne(start),
    "GET /api/history": ofOne(history),
    "GET /api/calls": ofOne(calls),
    "POST /api/look-up": json(lookUp),
    "POST /api/resend-callback": json(resendCallback),
  };
}

async function asked(ask: () => Promise<unknown>): Promise<PaymentActionResult> {
  try {
    await ask();
    return { kind: "asked" };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { kind: "refused", message: error.message };
  }
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
