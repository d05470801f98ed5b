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
import { Durations } from "./durations.ts";
import { Ring } from "./ring.ts";

/** An account's recent activity on this replica, and totals since the start. Bounded in size. */
export interface ActivityWindow {
  call(call: { endpoint: string; outcome: string; durationMs: number }): void;
  /** A call of this caller got a token, or was refused one. */
  waited(call: { caller: string; waitedMs: number; refused?: string }): void;
  callback(verdict: string): void;
  breaker(calls: "money" | "other", state: BreakerState): void;
  credentials(accepted: boolean): void;
  budget(remaining: number): void;
  settled(by: string): void;
  probe(lookupMethod: string, outcome: string): void;
  gaveUp(): void;
  /** Whether a call was sent in the last 5 seconds. */
  readonly busy: boolean;
  readonly budgetHistory: BudgetPoint[];
  readonly callers: readonly CallerWaits[];
  readonly upstream: UpstreamStatus;
  readonly callbacks: CallbackStatus;
  readonly reconciled: ReconciledStatus;
}

/** @param now wall clock in milliseconds */
export function createActivityWindow(now: () => number = Date.now): ActivityWindow {
  return new AccountActivity(now);
}

const secondsShown = 180;
const stepMs = 5_000;
const stepsInMinute = 12;
/** Five minutes. */
const steps = 60;
/** Bound of each set of names: more than there are verdicts and endpoints. */
const maxNames = 50;
const maxCallersShown = 10;

class AccountActivity implements ActivityWindow {
  readonly #seconds: Ring<{ remaining: number | null; sent: number }>;
  readonly #calls: Ring<Map<string, Figures>>;
  readonly #callers: Ring<Map<string, Figures>>;
  readonly #callbacks: Ring<Counts>;
  readonly #verdicts = new Counts();
  readonly #settled = new Counts();
  readonly #probes = new Counts();
  #givenUp = 0;
  #breakers: UpstreamStatus["breakers"] = { money: "closed", other: "closed" };
  #refused = false;

  constructor(now: () => number) {
    const second = () => ({ remaining: null, sent: 0 });
    this.#seconds = new Ring({ stepMs: 1_000, length: secondsShown, create: second, now });
    this.#calls = new Ring({ stepMs, length: steps, create: () => new Map(), now });
    this.#callers = new Ring({ stepMs, length: steps, create: () => new Map(), now });
    this.#callbacks = new Ring({ stepMs, length: steps, create: () => new Counts(), now });
  }

  call({ endpoint, outcome, durationMs }: Parameters<ActivityWindow["call"]>[0]): void {
    this.#seconds.current.sent += 1;
    const figures = this.#calls.current;
    const ofEndpoint = figures.get(endpoint) ?? new Figures();
    if (figures.size < maxNames) figures.set(endpoint, ofEndpoint);
    ofEndpoint.add(outcome, durationMs);
  }

  waited({ caller, waitedMs, refused }: Parameters<ActivityWindow["waited"]>[0]): void {
    const figures = this.#callers.current;
    const name = figures.has(caller) || figures.size < maxNames ? caller : "others";
    const ofCaller = figures.get(name) ?? new Figures();
    figures.set(name, ofCaller);
    ofCaller.calls += 1;
    if (refused === undefined) ofCaller.durations.add(waitedMs);
    else ofCaller.failed += 1;
  }

  callback(verdict: string): void {
    this.#callbacks.current.add(verdict);
    this.#verdicts.add(verdict);
  }

  breaker(calls: "money" | "other", state: BreakerState): void {
    this.#breakers = { ...this.#breakers, [calls]: state };
  }

  credentials(accepted: boolean): void {
    this.#refused = !accepted;
  }

  budget(remaining: number): void {
    this.#seconds.current.remaining = remaining;
  }

  settled(by: string): void {
    this.#settled.add(by);
  }

  probe(lookupMethod: string, outcome: string): void {
    this.#probes.add(`${lookupMethod} ${outcome}`);
  }

  gaveUp(): void {
    this.#givenUp += 1;
  }

  get busy(): boolean {
    return this.#seconds.last(5).some((second) => second !== undefined && second.sent > 0);
  }

  get budgetHistory(): BudgetPoint[] {
    return this.#seconds
      .last(secondsShown)
      .map((second) => (second ? { ...second } : { remaining: null, sent: 0 }));
  }

  get callers(): CallerWaits[] {
    return figuresByName(this.#callers.last(steps))
      .slice(0, maxCallersShown)
      .map(({ name: caller, calls, failed: refused, p95Ms: p95WaitMs }) => {
        return { caller, calls, refused, p95WaitMs };
      });
  }

  get upstream(): UpstreamStatus {
    const all = this.#calls.last(steps);
    const minute = sumOf(all.slice(-stepsInMinute).flatMap((step) => [...(step?.values() ?? [])]));
    return {
      health: this.#healthOf(minute),
      breakers: this.#breakers,
      minute,
      history: all.map((step): LatencyPoint => {
        const { p95Ms, calls, failed } = sumOf([...(step?.values() ?? [])]);
        return { p95Ms, calls, failed };
      }),
      endpoints: figuresByName(all).map(({ name: endpoint, ...figures }) => {
        return { endpoint, ...figures };
      }),
    };
  }

  get callbacks(): CallbackStatus {
    const history = this.#callbacks.last(steps);
    const recent = new Counts();
    for (const step of history) if (step) recent.addAll(step);
    return {
      recent: recent.counts,
      total: this.#verdicts.counts,
      history: history.map((step) => step?.sum ?? 0),
    };
  }

  get reconciled(): ReconciledStatus {
    return { settled: this.#settled.counts, probes: this.#probes.counts, givenUp: this.#givenUp };
  }

  #healthOf({ calls, failed }: CallFigures): UpstreamHealth {
    if (this.#refused) return "refused";
    const { money, other } = this.#breakers;
    if (money !== "closed" || other !== "closed") return "failing";
    if (calls === 0) return "idle";
    if (failed === 0) return "healthy";
    return failed * 2 >= calls ? "failing" : "degraded";
  }
}

class Figures {
  readonly durations = new Durations();
  calls = 0;
  failed = 0;
  limited = 0;

  add(outcome: string, durationMs: number): void {
    this.calls += 1;
    if (outcome === "429") this.limited += 1;
    // A decline is an answer, not a failure.
    else if (!answered.test(outcome)) this.failed += 1;
    this.durations.add(durationMs);
  }

  addAll(other: Figures): void {
    this.calls += other.calls;
    this.failed += other.failed;
    this.limited += other.limited;
    this.durations.addAll(other.durations);
  }
}

/** An HTTP status below 500, or a call that its caller cancelled. */
const answered = /^(?:[1-4]\d\d|CANCELLED)$/;

class Counts {
  readonly #counts = new Map<string, number>();
  sum = 0;

  add(name: string, count = 1): void {
    if (this.#counts.size >= maxNames && !this.#counts.has(name)) return;
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + count);
    this.sum += count;
  }

  addAll(other: Counts): void {
    for (const [name, count] of other.#counts) this.add(name, count);
  }

  get counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts);
  }
}

function sumOf(all: readonly Figures[]): CallFigures {
  const sum = new Figures();
  for (const figures of all) sum.addAll(figures);
  const { calls, failed, limited, durations } = sum;
  const [p50Ms = null, p95Ms = null] = [durations.quantile(0.5), durations.quantile(0.95)];
  return { calls, failed, limited, p50Ms, p95Ms };
}

/** Figures by name, the busiest first. */
function figuresByName(all: readonly (Map<string, Figures> | undefined)[]) {
  const names = new Set(all.flatMap((step) => [...(step?.keys() ?? [])]));
  return [...names]
    .map((name) => ({ name, ...sumOf(all.flatMap((step) => step?.get(name) ?? [])) }))
    .sort((a, b) => b.calls - a.calls || a.name.localeCompare(b.name));
}
