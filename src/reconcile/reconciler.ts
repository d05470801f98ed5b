import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { GatewayError } from "../errors.ts";
import { callOutcomeEntry, stateOfCall } from "../events/call-outcome.ts";
import type { EventLog, Snapshot } from "../events/log.ts";
import { CallOutcome } from "../gen/payments/v1/event_pb.ts";
import { type OpenCall, openCallsOf, settleAsPaid, settleByEvents } from "../intents/settle.ts";
import type { Intent, IntentStats, IntentStore, Subject } from "../intents/store.ts";
import { isKind, type Kind } from "../model/kinds.ts";
import type { PayoutEnds } from "../model/payout-statuses.ts";
import type { TokenBucket } from "../ratelimit/bucket.ts";
import { noTracing, type Span, type Tracing } from "../telemetry/tracing/tracing.ts";
import type { Upstream } from "../upstream/upstream.ts";
import { answersByCallback, type LookupMethod, type Probed, probe } from "./probe.ts";
import { trackPending } from "./track.ts";

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
  readonly observer: ReconcileObserver;
  /** Default: nothing is traced. */
  readonly tracing?: Tracing;
  /** Waits for this time, or until the signal aborts. Default: a timer. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
  /** The service's status texts for a finished payout. Default: success and failure. */
  readonly payoutEnds?: PayoutEnds;
  /** The `traceparent` of the last call for an external id, where one is known. Never rejects. */
  readonly causeOf?: (
    account: string,
    kind: Kind,
    externalId: string,
  ) => Promise<string | undefined>;
}

/** Receives what the reconciler reports for metrics and logs. */
export interface ReconcileObserver {
  /**
   * A call's outcome became known: by an event that was not requested (`event`), by a look-up
   * method, or by repeated NOT_FOUND answers (`notFound`).
   */
  onSettled(settled: {
    account: string;
    intent: Intent;
    by: LookupMethod | "event" | "notFound";
  }): void;
  onProbe(probe: { account: string; lookupMethod: LookupMethod; outcome: Probed["kind"] }): void;
  /** A call was not settled in time: an operator has to look. */
  onGivenUp(givenUp: { account: string; intent: Intent }): void;
  /** Counts of the open calls, reported every 5 s by the replica that reconciles. */
  onStats(stats: IntentStats & { account: string }): void;
  /** A round failed; the reconciler goes on with the next one. */
  onFailure(failure: { account: string; error: unknown }): void;
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
  /** Set while this replica reconciles: ends its reading of the event log. */
  #following: AbortController | undefined;
  /** Aborts to end the rest between two rounds. */
  #wake = new AbortController();
  /** An event made a call due, which the next round looks at. */
  #woken = false;
  /** The pause while the service is out of reach; it doubles each time. */
  #restMs = 0;
  #statsAtMs = -Infinity;

  constructor(account: string, holder: string, options: ReconcilerOptions, stop: AbortSignal) {
    this.#account = account;
    this.#holder = holder;
    this.#options = options;
    this.#stop = stop;
    stop.addEventListener("abort", () => this.#wake.abort(), { once: true });
  }

  async run(): Promise<void> {
    while (!this.#stop.aborted) {
      let pauseMs = this.#tickMs;
      try {
        const { intents } = this.#options;
        if (await intents.lease(this.#account, this.#holder, leaseMs)) {
          this.#follow();
          pauseMs = await this.#round();
        } else {
          this.#unfollow();
        }
      } catch (error) {
        this.#unfollow();
        this.#options.observer.onFailure({ account: this.#account, error });
      }
      await this.#rest(pauseMs);
    }
    this.#unfollow();
  }

  /** Looks at the intents that are due. @returns how long to rest, in milliseconds */
  async #round(): Promise<number> {
    const { intents, observer } = this.#options;
    const account = this.#account;
    const now = performance.now();
    if (now > this.#statsAtMs + statsEveryMs) {
      this.#statsAtMs = now;
      observer.onStats({ account, ...(await intents.stats(account)) });
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
    const { log, intents, observer, giveUpMs } = this.#options;
    const account = this.#account;
    // The call's lease is over: the replica that sent it is gone, or slow.
    if (given.state === "running") await intents.end(account, given, { state: "unknown" });
    const [openCall, snapshot] = await this.#openCall(given);
    if (!openCall) return done;
    const { intent } = openCall;
    // Publish UNKNOWN only once the intent is stored as unknown: from then on the call's own ending is
    // a late one, which is published too.
    if (intent.state === "unknown" && !stateOfCall(snapshot, intent.id)) {
      await log.append(account, callOutcomeEntry(intent, CallOutcome.UNKNOWN));
    }
    const became = await settleByEvents(this.#options, account, openCall);
    if (became === "settled") {
      // A callback that a look-up requested arrives like any other event.
      const by = answersByCallback(intent.kind) && intent.checks > 0 ? "resend" : "event";
      observer.onSettled({ account, intent, by });
    }
    if (became) return done;
    if (intents.nowMs(account) - intent.startedAtMs > giveUpMs) {
      await this.#giveUp(intent);
      return done;
    }
    const { upstream, bucket } = this.#accountRooms;
    if (!hasToSpare(bucket)) return { restMs: spareMs };

    const deadlineMs = Date.now() + this.#options.timeoutMs;
    const probed = await probe({
      ...{ upstream, intent, snapshot },
      options: { signal: this.#stop, deadlineMs },
      payoutEnds: this.#options.payoutEnds,
    });
    if (this.#stop.aborted) return done;
    observer.onProbe({ account, lookupMethod: probed.lookupMethod, outcome: probed.kind });
    span.set({
      "payments_gateway.lookup.method": probed.lookupMethod,
      "payments_gateway.lookup.outcome": probed.kind,
    });
    if (probed.kind === "unreachable") {
      this.#restMs = Math.min(Math.max(2 * this.#restMs, this.#tickMs), maxRestMs);
      // The service may fail for this call only: after the rest the others come first.
      const { checks, notFound } = intent;
      await intents.postpone(account, intent, { checks, notFound, inMs: this.#restMs });
      return { restMs: jittered(this.#restMs) };
    }
    this.#restMs = 0;
    await this.#conclude(intent, probed);
    return done;
  }

  async #conclude(intent: Intent, probed: Probed): Promise<void> {
    const { log, intents, observer, afterMs } = this.#options;
    const account = this.#account;
    const checks = intent.checks + 1;
    const notFound = probed.kind === "notFound" ? intent.notFound + 1 : 0;
    // Postpone before reading the events: one that arrives later makes the call due again.
    const pauseMs = Math.min(afterMs * 2 ** Math.min(checks, 20), Math.max(maxPauseMs, afterMs));
    const inMs = Math.min(jittered(pauseMs), this.#untilGivenUpMs(intent));
    await intents.postpone(account, intent, { checks, notFound, inMs });

    if (probed.kind === "paid") {
      await settleAsPaid(this.#options, account, intent, probed.said);
    }
    if (probed.kind === "learned") await log.append(account, probed.entry);
    const [openCall] = await this.#openCall(intent);
    // The call is not open any more if it was settled as paid, or if another process ended it.
    const became = openCall
      ? await settleByEvents(this.#options, account, openCall)
      : probed.kind === "paid" && "settled";
    if (became === "settled") observer.onSettled({ account, intent, by: probed.lookupMethod });
    if (became || !openCall || intent.state !== "unknown" || !this.#neverArrived(intent, notFound))
      return;
    await log.append(account, callOutcomeEntry(intent, CallOutcome.NOT_DONE));
    await intents.end(account, intent, { state: "closed", key: "keep" });
    observer.onSettled({ account, intent, by: "notFound" });
  }

  /** The call as it is now, undefined if it is not open any more, and the snapshot. */
  async #openCall({
    id,
    kind,
    externalId,
  }: Intent): Promise<[OpenCall | undefined, Snapshot | undefined]> {
    const known = await openCallsOf(this.#options, this.#account, kind, externalId);
    return [known.openCalls.find(({ intent }) => intent.id === id), known.snapshot];
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

  async #giveUp(intent: Intent): Promise<void> {
    const { log, intents, observer } = this.#options;
    if (intent.state === "unknown") {
      const entry = callOutcomeEntry(intent, CallOutcome.NEEDS_OPERATOR);
      await log.append(this.#account, entry);
    }
    await intents.giveUp(this.#account, intent);
    observer.onGivenUp({ account: this.#account, intent });
  }

  /** Follows the event log, so that a call is settled as soon as its event arrives. */
  #follow(): void {
    if (this.#following) return;
    const end = new AbortController();
    this.#following = end;
    void (async () => {
      const { log } = this.#options;
      const signal = AbortSignal.any([end.signal, this.#stop]);
      const events = await log.read(this.#account, { kinds: [] }, "latest", { signal });
      const subjects = new Map<string, Subject>();
      let scheduling: Promise<void> | undefined;
      for await (const { kind, externalId, callOutcome } of events) {
        if (callOutcome !== CallOutcome.UNSPECIFIED || !isKind(kind)) continue;
        subjects.set(`${kind}:${externalId}`, { kind, externalId });
        if (subjects.size >= maxToSchedule) await scheduling;
        if (scheduling) continue;
        scheduling = this.#schedule(subjects).finally(() => {
          scheduling = undefined;
        });
        scheduling.catch(() => end.abort());
      }
    })().catch(() => {
      // Cut off, or too slow: calls whose events were missed are looked at when they are due.
      if (this.#following === end) this.#following = undefined;
    });
  }

  /** Makes the open calls that events are about due now, those of several events together. */
  async #schedule(waiting: Map<string, Subject>): Promise<void> {
    while (waiting.size > 0) {
      const subjects = [...waiting.values()];
      waiting.clear();
      const found = await this.#options.intents.scheduleNow(this.#account, subjects);
      if (!found || this.#woken) continue;
      this.#woken = true;
      this.#wake.abort();
    }
  }

  #unfollow(): void {
    this.#following?.abort();
    this.#following = undefined;
  }

  /**
   * Rests for `ms`, or until an event makes a call due, and then for `gatherMs` more, so that one
   * round is for all events that arrive together. Events end the rest even while the service is out
   * of reach, since they settle calls by themselves.
   */
  async #rest(ms: number): Promise<void> {
    const { sleep = sleepByTimer } = this.#options;
    if (this.#stop.aborted) return;
    if (!this.#woken) {
      // A controller that was not aborted is used again.
      if (this.#wake.signal.aborted) this.#wake = new AbortController();
      await sleep(ms, this.#wake.signal);
    }
    if (this.#woken) await sleep(Math.min(gatherMs, ms), this.#stop);
    this.#woken = false;
  }

  get #accountRooms() {
    const rooms = this.#options.accounts.get(this.#account);
    if (!rooms) throw new Error(`no such merchant account: ${this.#account}`);
    return rooms;
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

/** How long events gather before a round looks at them. */
const gatherMs = 10;

/** Most external ids that are gathered from events while others are being scheduled. */
const maxToSchedule = 256;

/** The pause while too little of the rate budget is left. */
const spareMs = 500;

/** Longest pause while the service is out of reach, so that its return is noticed soon. */
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
