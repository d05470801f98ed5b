import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { GatewayError } from "../errors.ts";
import { isOperationOf, methodOf } from "../ledger/evidence.ts";
import type { Intent, IntentStore } from "../ledger/intents.ts";
import type { EventLog, Unfinished } from "../ledger/log.ts";
import type { Kind } from "../model/kinds.ts";
import type { TokenBucket } from "../ratelimit/bucket.ts";
import type { Report } from "../report.ts";
import { noTracing, type Span, type Tracing } from "../telemetry/tracing/tracing.ts";
import type { Upstream } from "../upstream/upstream.ts";
import { type Probed, probe } from "./probe.ts";

export interface ReconcilerOptions {
  readonly accounts: ReadonlyMap<
    string,
    { readonly upstream: Upstream; readonly bucket: TokenBucket }
  >;
  readonly log: EventLog;
  readonly intents: IntentStore;
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
  /** The `traceparent` of the last call for an external id, where one is known. Never rejects. */
  readonly causeOf?: (
    account: string,
    kind: Kind,
    externalId: string,
  ) => Promise<string | undefined>;
}

export interface Reconciler {
  /** Stops the reconciler; resolves when its look-ups under way have ended. */
  close(): Promise<void>;
}

/**
 * Finds out the outcome of calls whose answer was lost, and of payments and payouts that stay
 * pending without a callback. One replica at a time does it for an account. It uses only what is
 * left of the rate budget and never waits for a token.
 */
export function createReconciler(options: ReconcilerOptions): Reconciler {
  const stop = new AbortController();
  const holder = randomUUID();
  const loops = [...options.accounts.keys()].map((account) =>
    new AccountReconciler(account, holder, options, stop.signal).run(),
  );
  return {
    async close() {
      stop.abort();
      await Promise.all(loops);
    },
  };
}

class AccountReconciler {
  readonly #account: string;
  readonly #holder: string;
  readonly #options: ReconcilerOptions;
  readonly #stop: AbortSignal;
  /**
   * The pause while the service is out of reach, or the store does not take what it said; it doubles
   * each time.
   */
  #restMs = 0;
  #statsAtMs = -Infinity;

  constructor(account: string, holder: string, options: ReconcilerOptions, stop: AbortSignal) {
    this.#account = account;
    this.#holder = holder;
    this.#options = options;
    this.#stop = stop;
  }

  async run(): Promise<void> {
    const { sleep = sleepByTimer, report } = this.#options;
    const account = this.#account;
    let fails = false;
    while (!this.#stop.aborted) {
      let pauseMs = this.#tickMs;
      try {
        const { intents } = this.#options;
        if (await intents.lease(account, this.#holder, leaseMs)) pauseMs = await this.#round();
        if (fails) report?.("reconcileBack", { account });
        fails = false;
      } catch (error) {
        report?.("reconcileFailed", { account, error });
        fails = true;
        pauseMs = Math.max(pauseMs, this.#restMs);
      }
      if (!this.#stop.aborted) await sleep(pauseMs, this.#stop);
    }
  }

  /** Looks at the intents that are due. @returns how long to rest, in milliseconds */
  async #round(): Promise<number> {
    const { intents, report } = this.#options;
    const account = this.#account;
    const now = performance.now();
    if (now > this.#statsAtMs + statsEveryMs) {
      this.#statsAtMs = now;
      report?.("unsettled", { account, ...(await intents.stats(account)) });
    }
    const trackedAll = await trackPending(this.#options, account, batch);
    const due = await intents.due(account, batch);
    for (const intent of due) {
      if (this.#stop.aborted) return 0;
      if (!(await intents.lease(account, this.#holder, leaseMs))) return this.#tickMs;
      const { restMs } = await this.#tracedLook(intent);
      if (restMs > 0) return restMs;
    }
    return due.length === batch || !trackedAll ? 0 : this.#tickMs;
  }

  /** Each look is a trace of its own, which links to the call. */
  async #tracedLook(intent: Intent): Promise<{ restMs: number }> {
    const { tracing = noTracing, causeOf } = this.#options;
    const span = tracing.start("look up outcome", {
      kind: "internal",
      parent: "root",
      attributes: { "payments_gateway.account": this.#account },
    });
    try {
      return await span.run(() => this.#look(intent, span));
    } catch (error) {
      span.fail(error instanceof GatewayError ? error.code : "INTERNAL");
      throw error;
    } finally {
      if (span.traceparent) {
        span.link(await causeOf?.(this.#account, intent.kind, intent.externalId));
      }
      span.end();
    }
  }

  /** Looks at one intent. @returns how long all others have to wait, in milliseconds */
  async #look(given: Intent, span: Span): Promise<{ restMs: number }> {
    const { intents, report, giveUpMs } = this.#options;
    const account = this.#account;
    // The call's lease is over: the replica that sent it is gone, or slow.
    if (given.state === "running") await intents.end(account, given, { state: "unknown" });
    const known = await intents.known(account, given.kind, given.externalId);
    const intent = known.intents.find(({ id }) => id === given.id);
    // It was settled in between, by its events or by its own process.
    if (!intent) return done;
    if (intents.nowMs(account) - intent.startedAtMs > giveUpMs) {
      await intents.giveUp(account, intent);
      const { method, externalId, state: was, startedAtMs } = intent;
      report?.("givenUp", { account, method, externalId, was, startedAtMs });
      return done;
    }
    const { upstream, bucket } = this.#ofAccount;
    if (!hasToSpare(bucket)) return { restMs: spareMs };

    const deadlineMs = Date.now() + this.#options.timeoutMs;
    const probed = await probe({
      ...{ upstream, intent, snapshot: known.snapshot },
      options: { signal: this.#stop, deadlineMs },
    });
    if (this.#stop.aborted) return done;
    report?.("probed", { account, lookupMethod: probed.lookupMethod, outcome: probed.kind });
    span.set({
      "payments_gateway.lookup.method": probed.lookupMethod,
      "payments_gateway.lookup.outcome": probed.kind,
    });
    // Until the store has what the service said.
    this.#restMs = Math.min(Math.max(2 * this.#restMs, this.#tickMs), maxRestMs);
    if (probed.kind === "unreachable") {
      // The service may fail for this call only: after the rest the others come first.
      const { checks, notFound } = intent;
      await intents.looked(account, intent, { checks, notFound, inMs: this.#restMs });
      return { restMs: jittered(this.#restMs) };
    }
    await this.#conclude(intent, probed);
    this.#restMs = 0;
    return done;
  }

  async #conclude(intent: Intent, probed: Probed): Promise<void> {
    const { intents, afterMs } = this.#options;
    const checks = intent.checks + 1;
    const notFound = probed.kind === "notFound" ? intent.notFound + 1 : 0;
    const pauseMs = Math.min(afterMs * 2 ** Math.min(checks, 20), Math.max(maxPauseMs, afterMs));
    await intents.looked(this.#account, intent, {
      ...{ checks, notFound },
      inMs: Math.min(jittered(pauseMs), this.#untilGivenUpMs(intent)),
      told: probed.kind === "learned" ? probed.entry : undefined,
      paid: probed.kind === "paid" ? probed.said : undefined,
      neverArrived: this.#neverArrived(intent, notFound),
      by: probed.lookupMethod,
    });
  }

  /**
   * A delayed request may still arrive at the service: NOT_FOUND counts only three times in a row,
   * and only some time after the call's start.
   */
  #neverArrived({ startedAtMs }: Intent, notFound: number): boolean {
    const longEnoughMs = Math.max(5 * this.#options.afterMs, 2 * this.#options.timeoutMs);
    return (
      notFound >= 3 && this.#options.intents.nowMs(this.#account) - startedAtMs >= longEnoughMs
    );
  }

  /**
   * The time until a call is given up, in milliseconds: no pause is longer, so that an operator
   * learns of the call, and its lock ends, in time.
   */
  #untilGivenUpMs({ startedAtMs }: Intent): number {
    const { intents, giveUpMs } = this.#options;
    return Math.max(startedAtMs + giveUpMs - intents.nowMs(this.#account), 0) + 1;
  }

  get #ofAccount() {
    const account = this.#options.accounts.get(this.#account);
    if (!account) throw new Error(`no such merchant account: ${this.#account}`);
    return account;
  }

  get #tickMs(): number {
    return Math.min(1_000, Math.max(this.#options.afterMs / 4, 20));
  }
}

async function sleepByTimer(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal, ref: false }).catch(() => {});
}

const done = { restMs: 0 };

/** How many due intents, or pending operations, are fetched at a time. */
const batch = 10;

/** The reconciler's lease: after a replica dies, the others wait this long at most. */
const leaseMs = 10_000;

const statsEveryMs = 5_000;

/** The pause while too little of the rate budget is left. */
const spareMs = 500;

/** Longest pause while the service or the store is out of reach, so that its return is noticed soon. */
const maxRestMs = 10_000;

const maxPauseMs = 3_600_000;

/** Whether more than half of the budget is left: callers will not miss the token then. */
function hasToSpare(bucket: TokenBucket): boolean {
  const { limit, remaining } = bucket.status();
  return remaining > limit / 2;
}

function jittered(ms: number): number {
  return ms * (0.8 + Math.random() * 0.4);
}

/**
 * Makes intents for operations that have been pending for `afterMs` and have none: of payments and
 * payouts that no call of this gateway made, or whose intent is no longer stored. Looks into at
 * most `limit` operations at a time.
 * @returns false if there may be more
 */
async function trackPending(
  {
    log,
    intents,
    afterMs,
  }: { readonly log: EventLog; readonly intents: IntentStore; readonly afterMs: number },
  account: string,
  limit: number,
): Promise<boolean> {
  const inHands: Unfinished[] = [];
  for (const operation of await log.unfinished(account, afterMs, limit)) {
    const method = methodOf(operation.operation);
    const { intents: open } = await intents.known(account, operation.kind, operation.externalId);
    const isKnown = open.some(
      ({ method, subjectId }) =>
        subjectId === operation.subjectId && isOperationOf(method, operation),
    );
    // The store tracks too many already: the log returns the rest again next time.
    if (method && !isKnown && !(await intents.track(account, { ...operation, method }))) break;
    inHands.push(operation);
  }
  await log.dismiss(account, inHands);
  return inHands.length < limit;
}
