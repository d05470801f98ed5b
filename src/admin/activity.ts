import { ofAccount } from "../errors.ts";
import { type Observations, reportTo } from "../report.ts";
import type { CallerWaits, CallFigures, Status, UpstreamHealth } from "./console-api.ts";

export type Activities = ReturnType<typeof createActivities>;

/**
 * What this replica did in the last five minutes for each account, for the console. It hears of it
 * by `report`.
 * @param remaining tokens that are left of an account's rate budget
 */
export function createActivities(
  accounts: readonly string[],
  remaining: (account: string) => number,
) {
  const all = new Map(accounts.map((name) => [name, new Activity(() => remaining(name))]));
  /** For callbacks to a path that names no account of ours: any of them may have been meant. */
  const astray = new Activity(() => 0);
  return {
    report: reportTo({
      upstreamCall: (call) => all.get(call.account)?.called(call),
      tokenGiven: (given) => all.get(given.account)?.waited(given),
      breaker: (changed) => all.get(changed.account)?.switched(changed),
      credentials: ({ account, accepted }) => all.get(account)?.tried(accepted),
      callback: ({ account = "", verdict }) => (all.get(account) ?? astray).calledBack(verdict),
    }),
    of(account: string): Figures {
      const { callbacks, ...figures } = ofAccount(all, account).figures;
      const others = Object.entries(astray.figures.callbacks);
      return { ...figures, callbacks: countsOf([...Object.entries(callbacks), ...others]) };
    },
    /** Accounts whose credentials the service refuses, by a call of the last minute. */
    refused: () => [...all].filter(([, { isRefused }]) => isRefused).map(([name]) => name),
  };
}

const stepMs = 5_000;
/** Five minutes. */
const steps = 60;
const stepsInMinute = 12;
/** Most callers that are told apart in one step, and most durations that it keeps. */
const maxCallers = 50;
const maxDurations = 200;
const maxCallersShown = 10;
/** How long refused credentials count after the account's last call. */
const refusedMs = 60_000;

/** What happened in five seconds. */
class Step {
  sent = 0;
  failed = 0;
  readonly durationsMs: number[] = [];
  /** The lowest that was seen. */
  remaining: number | null = null;
  readonly callers = new Map<string, Waits>();
  readonly verdicts = new Map<string, number>();
}

const idle = new Step();

type Figures = Pick<Status, "upstream" | "history" | "callbacks"> &
  Pick<Status["budget"], "callers">;

/** An account's recent activity. It holds nothing of steps in which nothing happened. */
class Activity {
  readonly #remaining: () => number;
  readonly #steps = new Map<number, Step>();
  #breakers: Status["upstream"]["breakers"] = { money: "closed", other: "closed" };
  #refusesCredentials = false;
  #lastTokenMs = -Infinity;

  constructor(remaining: () => number) {
    this.#remaining = remaining;
  }

  called({ outcome, durationMs }: Observations["upstreamCall"]): void {
    const step = this.#step();
    step.sent += 1;
    // A decline is an answer, not a failure.
    if (!answered.test(outcome)) step.failed += 1;
    if (step.durationsMs.length < maxDurations) step.durationsMs.push(durationMs);
  }

  /** A call got a token, or was refused one. */
  waited({ caller, waitedMs, refused }: Observations["tokenGiven"]): void {
    this.#lastTokenMs = performance.now();
    const { callers } = this.#sampled();
    // Without a caller it is the gateway's own look-up, which takes only spare tokens.
    if (!caller) return;
    const name = callers.has(caller.name) || callers.size < maxCallers ? caller.name : "others";
    const isServed = refused === undefined;
    const call = { calls: 1, refused: isServed ? 0 : 1, longestWaitMs: isServed ? waitedMs : 0 };
    callers.set(name, plus(callers.get(name), call));
  }

  switched({ calls, state }: Observations["breaker"]): void {
    this.#breakers = { ...this.#breakers, [calls]: state };
  }

  /** The service accepted or refused the account's credentials. */
  tried(accepted: boolean): void {
    this.#refusesCredentials = !accepted;
    this.#lastTokenMs = performance.now();
  }

  calledBack(verdict: string): void {
    const { verdicts } = this.#step();
    verdicts.set(verdict, (verdicts.get(verdict) ?? 0) + 1);
  }

  /** Notes what is left of the budget. @returns the current step */
  #sampled(): Step {
    const step = this.#step();
    const remaining = this.#remaining();
    step.remaining = Math.min(step.remaining ?? remaining, remaining);
    return step;
  }

  /** Only a call shows that credentials are accepted again, and who is not ready gets none. */
  get isRefused(): boolean {
    return this.#refusesCredentials && performance.now() - this.#lastTokenMs < refusedMs;
  }

  /** The last five minutes, and what is left of the budget now. */
  get figures(): Figures {
    this.#sampled();
    const first = this.#now() - steps + 1;
    const recent = Array.from({ length: steps }, (_, at) => this.#steps.get(first + at) ?? idle);
    const minute = figuresOf(recent.slice(-stepsInMinute));
    return {
      upstream: { health: this.#healthOf(minute, recent), breakers: this.#breakers, minute },
      history: recent.map((step) => ({ ...figuresOf([step]), remaining: step.remaining })),
      callers: callersOf(recent),
      callbacks: countsOf(recent.flatMap(({ verdicts }) => [...verdicts])),
    };
  }

  #healthOf({ calls, failed }: CallFigures, recent: readonly Step[]): UpstreamHealth {
    const { money, other } = this.#breakers;
    if (this.#refusesCredentials) return "refused";
    if (money !== "closed" || other !== "closed") return "failing";
    if (calls === 0) return "idle";
    if (failed === 0) return "healthy";
    // What went well before the service stopped answering does not count.
    const latest = recent.findLast(({ sent }) => sent > 0);
    return latest?.failed === latest?.sent || failed * 2 >= calls ? "failing" : "degraded";
  }

  /** The current step. */
  #step(): Step {
    const now = this.#now();
    let step = this.#steps.get(now);
    if (!step) {
      for (const at of this.#steps.keys()) if (at <= now - steps) this.#steps.delete(at);
      step = new Step();
      this.#steps.set(now, step);
    }
    return step;
  }

  #now(): number {
    return Math.floor(performance.now() / stepMs);
  }
}

/** An HTTP status below 500, or a call that its caller cancelled. */
const answered = /^(?:[1-4]\d\d|CANCELLED)$/;

type Waits = Omit<CallerWaits, "caller">;

function callersOf(recent: readonly Step[]): CallerWaits[] {
  const sums = new Map<string, Waits>();
  for (const { callers } of recent) {
    for (const [name, waits] of callers) sums.set(name, plus(sums.get(name), waits));
  }
  return [...sums]
    .map(([caller, waits]) => ({ caller, ...waits }))
    .sort((a, b) => b.calls - a.calls || a.caller.localeCompare(b.caller))
    .slice(0, maxCallersShown);
}

function countsOf(all: readonly (readonly [name: string, count: number])[]) {
  const counts: Record<string, number> = {};
  for (const [name, count] of all) counts[name] = (counts[name] ?? 0) + count;
  return counts;
}

function plus(a: Waits | undefined, b: Waits): Waits {
  return {
    calls: (a?.calls ?? 0) + b.calls,
    refused: (a?.refused ?? 0) + b.refused,
    longestWaitMs: Math.max(a?.longestWaitMs ?? 0, b.longestWaitMs),
  };
}

function figuresOf(all: readonly Step[]): CallFigures {
  const durations = all.flatMap(({ durationsMs }) => durationsMs).sort((a, b) => a - b);
  /** What this share of the durations did not exceed. */
  const quantileMs = (share: number) => {
    const found = durations[Math.ceil(share * durations.length) - 1];
    return found === undefined ? null : Math.round(found);
  };
  return {
    calls: all.reduce((sum, { sent }) => sum + sent, 0),
    failed: all.reduce((sum, { failed }) => sum + failed, 0),
    ...{ p50Ms: quantileMs(0.5), p95Ms: quantileMs(0.95) },
  };
}
