import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { GatewayError, ofAccount } from "../errors.ts";
import type { Intent } from "../ledger/intents.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { passOver } from "../ledger/record.ts";
import { startTimer } from "../net/timer.ts";
import type { TokenBucket } from "../ratelimit/queued-bucket.ts";
import { noReport, type Report } from "../report.ts";
import { noTracing, type Span, type Tracing } from "../telemetry/tracing/tracing.ts";
import type { Account } from "../upstream/upstream.ts";
import { type Probed, probes } from "./probe.ts";

export interface ReconcilerOptions {
  readonly accounts: ReadonlyMap<string, Account>;
  readonly ledger: Ledger;
  /**
   * RECONCILE_AFTER: the pause before the first look. Each further one is twice as long, up to an
   * hour or this time if that is longer.
   */
  readonly afterMs: number;
  /** RECONCILE_GIVE_UP: a call that is not settled this long after its start needs an operator. */
  readonly giveUpMs: number;
  /** Longest that one look-up may take. */
  readonly timeoutMs: number;
  /** Default: nothing is reported. */
  readonly report?: Report;
  /** Default: nothing is traced. */
  readonly tracing?: Tracing;
  /** Waits for this time, or until the signal aborts. Default: a timer. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
}

export type Reconciler = ReturnType<typeof createReconciler>;

/**
 * Finds out the outcome of calls whose answer was lost, and of payments and payouts that stay
 * pending without a callback. One replica at a time does it for an account. It uses only what is
 * left of the rate budget and never waits for a token.
 */
export function createReconciler(options: ReconcilerOptions) {
  const stop = new AbortController();
  const holder = randomUUID();
  const loops = [...options.accounts.keys()].map((account) =>
    reconcile(account, holder, options, stop.signal),
  );
  return {
    /** Stops the reconciler; resolves when its look-ups under way have ended. */
    async close(): Promise<void> {
      stop.abort();
      await Promise.all(loops);
    },
  };
}

/** Reconciles one account until `stop` aborts. */
async function reconcile(
  account: string,
  holder: string,
  options: ReconcilerOptions,
  stop: AbortSignal,
): Promise<void> {
  const { ledger, afterMs, giveUpMs, timeoutMs } = options;
  const { report = noReport, tracing = noTracing } = options;
  const byTimer = (ms: number, signal: AbortSignal) =>
    delay(ms, undefined, { signal, ref: false }).catch(() => {});
  const { sleep = byTimer } = options;
  const { upstream, bucket } = ofAccount(options.accounts, account);
  const tickMs = Math.min(1_000, Math.max(afterMs / 4, 20));
  /**
   * The pause while the service is out of reach, or the store does not take what it said; it doubles
   * each time.
   */
  let restMs = 0;
  /** When the reconciler began, by the store's clock. */
  let sinceMs: number | undefined;

  let fails = false;
  while (!stop.aborted) {
    let pauseMs = tickMs;
    try {
      pauseMs = await round();
      if (fails) report("reconcileBack", { account });
      fails = false;
    } catch (error) {
      report("reconcileFailed", { account, error });
      fails = true;
      pauseMs = Math.max(pauseMs, restMs);
    }
    if (!stop.aborted) await sleep(pauseMs, stop);
  }

  /** Looks at the intents that are due. @returns how long to rest, in milliseconds */
  async function round(): Promise<number> {
    const due = await ledger.due(account, batch);
    // By now the store's clock is known.
    sinceMs ??= ledger.nowMs(account);
    let left = batch;
    for (const intent of due) {
      if (stop.aborted) return 0;
      if (!(await ledger.lease(account, holder, leaseMs))) return tickMs;
      const othersWaitMs = await tracedLook(intent).catch(passOver);
      if (othersWaitMs === undefined) continue;
      if (othersWaitMs > 0) return othersWaitMs;
      left -= 1;
    }
    return left === 0 ? 0 : tickMs;
  }

  /** Each look is a trace of its own, which links to the call. */
  async function tracedLook(intent: Intent): Promise<number> {
    const span = tracing.start("look up outcome", {
      kind: "internal",
      parent: "root",
      attributes: { "payments_gateway.account": account },
    });
    try {
      return await span.run(() => look(intent, span));
    } catch (error) {
      span.fail(error instanceof GatewayError ? error.code : "INTERNAL");
      throw error;
    } finally {
      const { kind, externalId } = intent;
      if (span.traceparent) span.link(await ledger.causeOf(account, kind, externalId));
      span.end();
    }
  }

  /** Looks at one intent. @returns how long all others have to wait, in milliseconds */
  async function look(given: Intent, span: Span): Promise<number> {
    // The call's lease is over: the replica that sent it is gone, or slow.
    if (given.state === "running") await ledger.lose(account, given);
    const known = await ledger.known(account, given.kind, given.externalId);
    const intent = known.calls.find(({ id }) => id === given.id);
    // It was settled in between, by its events or by its own process.
    if (!intent) return 0;
    const mayAsk = hasToSpare(bucket);
    if (isToBeGivenUp(given, mayAsk)) {
      await ledger.giveUp(account, intent);
      const { method, externalId, state: was, startedAtMs } = intent;
      report("givenUp", { account, method, externalId, was, startedAtMs });
      return 0;
    }
    if (!mayAsk) return spareMs;

    const deadlineMs = Date.now() + timeoutMs;
    const late = new AbortController();
    const stopTimer = startTimer(timeoutMs, () => {
      late.abort(new GatewayError("DEADLINE_EXCEEDED", "the look-up took too long"));
    });
    const signal = AbortSignal.any([stop, late.signal]);
    const { operations } = known;
    const lookup = { upstream, intent, operations, options: { signal, deadlineMs } };
    const probed = await probes[intent.kind](lookup).finally(stopTimer);
    if (stop.aborted) return 0;
    report("probed", { account, lookupMethod: probed.lookupMethod, outcome: probed.kind });
    span.set({
      "payments_gateway.lookup.method": probed.lookupMethod,
      "payments_gateway.lookup.outcome": probed.kind,
    });
    // Until the store has what the service said.
    restMs = Math.min(Math.max(2 * restMs, tickMs), maxRestMs);
    if (probed.kind === "unreachable") {
      // The service may fail for this call only: after the rest the others come first.
      const { checks, notFound } = intent;
      await ledger.looked(account, intent, { checks, notFound, inMs: restMs });
      return jittered(restMs);
    }
    await conclude(intent, probed);
    restMs = 0;
    return 0;
  }

  /**
   * A call is given up only after a look beyond its time: nobody looked while no gateway ran, or
   * before the clock was set forward. One that has just started also waits for the service: all may
   * come back together after an outage.
   */
  function isToBeGivenUp({ state, startedAtMs, dueMs }: Intent, mayAsk: boolean): boolean {
    if (ledger.nowMs(account) - startedAtMs <= giveUpMs || hasJustStarted()) return false;
    return !mayAsk || (state !== "running" && dueMs > startedAtMs + giveUpMs);
  }

  function hasJustStarted(): boolean {
    return ledger.nowMs(account) - (sinceMs ?? 0) < 5 * afterMs;
  }

  async function conclude(intent: Intent, probed: Probed): Promise<void> {
    const checks = intent.checks + 1;
    const notFound = probed.kind === "notFound" ? intent.notFound + 1 : 0;
    const pauseMs = Math.min(afterMs * 2 ** Math.min(checks, 20), Math.max(maxPauseMs, afterMs));
    const ageMs = ledger.nowMs(account) - intent.startedAtMs;
    // No pause is longer: an operator learns of the call, and its lock ends, in time.
    const untilGivenUpMs =
      ageMs < giveUpMs
        ? giveUpMs - ageMs + 1
        : Math.min(afterMs, hasJustStarted() ? Infinity : callbackMs);
    // A delayed request may still arrive at the service: NOT_FOUND counts only three times in a
    // row, and only some time after the call's start.
    const isLongAgo = ageMs >= Math.max(5 * afterMs, 2 * timeoutMs);
    await ledger.looked(account, intent, {
      ...{ checks, notFound },
      inMs: Math.min(jittered(pauseMs), untilGivenUpMs),
      ...{ told: probed.told, paid: probed.paid },
      neverArrived: notFound >= 3 && isLongAgo,
      by: probed.lookupMethod,
    });
  }
}

/** How many due intents are fetched at a time. */
const batch = 10;

/** The reconciler's lease: after a replica dies, the others wait this long at most. */
const leaseMs = 10_000;

/** The pause while too little of the rate budget is left. */
const spareMs = 500;

/** Longest pause while the service or the store is out of reach, so that its return is noticed soon. */
const maxRestMs = 10_000;

const maxPauseMs = 3_600_000;

/** How long a callback that was asked for may take, before its call is given up. */
const callbackMs = 3_000;

/** Whether more than half of the budget is left: callers will not miss the token then. */
function hasToSpare(bucket: TokenBucket): boolean {
  const { limit, remaining } = bucket.status();
  return remaining > limit / 2;
}

function jittered(ms: number): number {
  return ms * (0.8 + Math.random() * 0.4);
}
