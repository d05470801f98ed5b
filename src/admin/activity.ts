import type { Observations } from "../report.ts";
import { Durations, fineBuckets, type Metrics } from "../telemetry/metrics.ts";
import type {
  BreakerState,
  BudgetPoint,
  CallbackStatus,
  CallerWaits,
  CallFigures,
  LatencyPoint,
  ReconciledStatus,
  UpstreamHealth,
  UpstreamStatus,
} from "./console-api.ts";

/** Activity by account. */
export type Activities = ReadonlyMap<string, Activity>;

const secondsShown = 180;
const secondsInStep = 5;
/** Five minutes. */
const steps = 60;
const stepsInMinute = 12;
/** Most callers that are told apart in one step. */
const maxCallers = 50;
const maxCallersShown = 10;
/** How long refused credentials count after the account's last call, in milliseconds. */
const refusedMs = 60_000;

/**
 * An account's recent activity on this replica: how far the metrics have moved since earlier points
 * in time. Only callers are counted here, since metrics have no series for each. Bounded in size.
 */
export class Activity {
  readonly #account: string;
  readonly #metrics: Pick<Metrics, "series">;
  /** Each as it began; the current one is the last. */
  readonly #seconds: { readonly sent: number; remaining: number | null }[] = [];
  readonly #steps: Totals[] = [];
  readonly #callers: Map<string, Caller>[] = [];
  #ticks = 0;
  #lastCallMs = -Infinity;

  constructor(account: string, metrics: Pick<Metrics, "series">) {
    this.#account = account;
    this.#metrics = metrics;
    this.tick();
  }

  /** Begins the next second: to be called once in each. */
  tick(): void {
    push(this.#seconds, { sent: this.#sent, remaining: null }, secondsShown);
    if (this.#ticks++ % secondsInStep !== 0) return;
    const last = this.#steps.at(-1);
    const now = this.#totals();
    // Steps in which nothing happens share what they hold.
    const isIdle = last?.all[0] === now.all[0] && sumOf(last?.verdicts) === sumOf(now.verdicts);
    push(this.#steps, isIdle ? (last ?? now) : now, steps);
    push(this.#callers, new Map(), steps);
  }

  /** Notes what is left of the budget in this second. */
  budget(remaining: number): void {
    const second = this.#seconds.at(-1);
    if (second) second.remaining = remaining;
  }

  /** A call got a token, or was refused one. */
  waited({ caller, waitedMs, refused }: Observations["tokenGiven"]): void {
    this.#lastCallMs = performance.now();
    const callers = this.#callers.at(-1);
    // Without a caller it is the gateway's own look-up, which takes only spare tokens.
    if (!callers || !caller) return;
    const name = callers.has(caller.name) || callers.size < maxCallers ? caller.name : "others";
    const of = callers.get(name) ?? { calls: 0, refused: 0, waits: new Durations(fineBuckets) };
    callers.set(name, of);
    of.calls += 1;
    if (refused === undefined) of.waits.observe(waitedMs);
    else of.refused += 1;
  }

  /** Whether a call was sent in the last 5 seconds. */
  get busy(): boolean {
    const [first] = this.#seconds.slice(-5);
    return this.#sent > (first?.sent ?? 0);
  }

  get budgetHistory(): BudgetPoint[] {
    const points = spans(this.#seconds, { sent: this.#sent }).map(([began, ended]) => {
      return { remaining: began.remaining, sent: ended.sent - began.sent };
    });
    return padded(points, secondsShown, { remaining: null, sent: 0 });
  }

  get callers(): CallerWaits[] {
    const sums = new Map<string, Figures>();
    for (const step of this.#callers) {
      for (const [name, { calls, refused, waits }] of step) {
        const figures = [calls, refused, 0, ...waits.counts];
        sums.set(name, plus(sums.get(name) ?? none, figures));
      }
    }
    return byCalls(sums)
      .slice(0, maxCallersShown)
      .map(({ name: caller, calls, failed: refused, p95Ms: p95WaitMs }) => {
        return { caller, calls, refused, p95WaitMs };
      });
  }

  get upstream(): UpstreamStatus {
    const now = this.#totals();
    const minute = shown(minus(now.all, this.#steps.slice(-stepsInMinute)[0]?.all));
    const history = spans(this.#steps, now).map(([began, ended]) => {
      const { p95Ms, calls, failed } = shown(minus(ended.all, began.all));
      return { p95Ms, calls, failed };
    });
    const before = this.#steps[0]?.endpoints;
    const endpoints = new Map(
      [...now.endpoints].map(([name, figures]) => [name, minus(figures, before?.get(name))]),
    );
    const breakers = { money: this.#breakerOf("money"), other: this.#breakerOf("other") };
    return {
      health: this.#healthOf(minute, history, breakers),
      breakers,
      minute,
      history: padded(history, steps, { p95Ms: null, calls: 0, failed: 0 }),
      endpoints: byCalls(endpoints)
        .filter(({ calls }) => calls > 0)
        .map(({ name: endpoint, ...figures }) => ({ endpoint, ...figures })),
    };
  }

  get callbacks(): CallbackStatus {
    const now = this.#totals();
    const total = now.verdicts;
    const before = this.#steps[0]?.verdicts;
    const recent = Object.entries(total).map(([verdict, count]) => {
      return [verdict, count - (before?.[verdict] ?? 0)] as const;
    });
    const history = spans(this.#steps, now).map(
      ([began, ended]) => sumOf(ended.verdicts) - sumOf(began.verdicts),
    );
    return {
      recent: Object.fromEntries(recent.filter(([, count]) => count > 0)),
      total,
      history: padded(history, steps, 0),
    };
  }

  get reconciled(): ReconciledStatus {
    return {
      settled: this.#counts("reconciliations_settled_total", ({ by = "" }) => by),
      probes: this.#counts(
        "reconciliation_probes_total",
        ({ lookup_method, outcome }) => `${lookup_method} ${outcome}`,
      ),
      givenUp: this.#sum("reconciliations_given_up_total"),
    };
  }

  /**
   * Whether the service refuses the merchant's credentials, as of a call in the last minute: only a
   * call shows that they are accepted again, and a gateway that is not ready gets none.
   */
  get isRefused(): boolean {
    return this.#areRefused && performance.now() - this.#lastCallMs < refusedMs;
  }

  get #areRefused(): boolean {
    return this.#sum("upstream_credentials_refused") > 0;
  }

  get #sent(): number {
    return this.#sum("upstream_requests_total");
  }

  #totals(): Totals {
    const endpoints = new Map<string, Figures>();
    const durations = this.#metrics.series<Durations>("upstream_account_seconds", this.#account);
    for (const { labels, series } of durations) {
      endpoints.set(labels.endpoint ?? "", [0, 0, 0, ...series.counts]);
    }
    for (const { labels, series } of this.#numbers("upstream_requests_total")) {
      const { endpoint = "", outcome = "" } = labels;
      const calls = series.value ?? 0;
      const limited = outcome === "429" ? calls : 0;
      // A decline is an answer, not a failure.
      const failed = answered.test(outcome) ? 0 : calls;
      const before = endpoints.get(endpoint) ?? none;
      endpoints.set(endpoint, plus(before, [calls, failed, limited]));
    }
    return {
      endpoints,
      all: [...endpoints.values()].reduce(plus, none),
      // A path that names no account of ours may have been meant for any of them.
      verdicts: this.#counts("callbacks_total", ({ verdict = "" }) => verdict, [this.#account, ""]),
    };
  }

  #healthOf(
    { calls, failed }: CallFigures,
    history: readonly LatencyPoint[],
    breakers: UpstreamStatus["breakers"],
  ): UpstreamHealth {
    if (this.#areRefused) return "refused";
    if (breakers.money !== "closed" || breakers.other !== "closed") return "failing";
    if (calls === 0) return "idle";
    if (failed === 0) return "healthy";
    // What went well before the service stopped answering does not count.
    const latest = history.findLast((point) => point.calls > 0);
    if (latest?.failed === latest?.calls) return "failing";
    return failed * 2 >= calls ? "failing" : "degraded";
  }

  #breakerOf(calls: string): BreakerState {
    const states = this.#numbers("upstream_breaker_state");
    const state = states.find(({ labels }) => labels.calls === calls)?.series.value ?? 0;
    return (["closed", "halfOpen", "open"] as const)[state] ?? "closed";
  }

  #numbers(metric: string, account = this.#account) {
    return this.#metrics.series<{ readonly value: number | undefined }>(metric, account);
  }

  #sum(metric: string): number {
    return this.#numbers(metric).reduce((sum, { series }) => sum + (series.value ?? 0), 0);
  }

  /** The numbers of a metric above 0, summed by what `nameOf` makes of their labels. */
  #counts(
    metric: string,
    nameOf: (labels: Readonly<Record<string, string>>) => string,
    accounts: readonly string[] = [this.#account],
  ): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { labels, series } of accounts.flatMap((one) => this.#numbers(metric, one))) {
      const name = nameOf(labels);
      if (series.value) counts[name] = (counts[name] ?? 0) + series.value;
    }
    return counts;
  }
}

/** An HTTP status below 500 (429 is counted apart), or a call that its caller cancelled. */
const answered = /^(?:[1-4]\d\d|CANCELLED)$/;

interface Caller {
  calls: number;
  refused: number;
  readonly waits: Durations;
}

interface Totals {
  readonly all: Figures;
  readonly endpoints: ReadonlyMap<string, Figures>;
  readonly verdicts: Readonly<Record<string, number>>;
}

/** Calls, failed ones, ones answered with 429, and then the durations by bucket. */
type Figures = readonly number[];

const none: Figures = [0, 0, 0, ...new Durations(fineBuckets).counts];

function plus(a: Figures, b: Figures): Figures {
  return a.map((figure, at) => figure + (b[at] ?? 0));
}

function minus(a: Figures, b: Figures = none): Figures {
  return a.map((figure, at) => figure - (b[at] ?? 0));
}

function shown([calls = 0, failed = 0, limited = 0, ...counts]: Figures): CallFigures {
  const [p50Ms, p95Ms] = [quantileMs(counts, 0.5), quantileMs(counts, 0.95)];
  return { calls, failed, limited, p50Ms, p95Ms };
}

/** Figures by name, the busiest first. */
function byCalls(all: ReadonlyMap<string, Figures>) {
  return [...all]
    .map(([name, figures]) => ({ name, ...shown(figures) }))
    .sort((a, b) => b.calls - a.calls || a.name.localeCompare(b.name));
}

/** What `share` (0 to 1) of the durations did not exceed, in whole ms; null without any. */
function quantileMs(counts: readonly number[], share: number): number | null {
  const wanted = share * counts.reduce((sum, count) => sum + count, 0);
  let before = 0;
  for (const [at, count] of counts.entries()) {
    if (count > 0 && before + count >= wanted) {
      const from = fineBuckets[at - 1] ?? 0;
      const to = fineBuckets[at] ?? from;
      return Math.round(1_000 * (from + ((to - from) * (wanted - before)) / count));
    }
    before += count;
  }
  return null;
}

function sumOf(counts: Readonly<Record<string, number>> = {}): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

/** Each of these with what follows it, and the last one with what is now. */
function spans<Then extends Now, Now>(all: readonly Then[], now: Now) {
  return all.map((began, at): [began: Then, ended: Now] => [began, all[at + 1] ?? now]);
}

function push<T>(list: T[], item: T, most: number): void {
  if (list.push(item) > most) list.shift();
}

function padded<T>(points: readonly T[], length: number, nothing: T): T[] {
  return [...new Array<T>(length - points.length).fill(nothing), ...points];
}
