import { Random } from "./random.ts";

/** The calls that move money. */
export type Method =
  | "CreatePayment"
  | "CreateRecurrentPayment"
  | "ConfirmPayment"
  | "RequestPayout";

/** What the service does with one request that moves money. */
export type Turn =
  | "pay"
  /** An action of the customer comes first; the end follows by a callback. */
  | "pending"
  | "pendingThenFail"
  | "decline"
  | "declineAsData"
  /** Too Many Requests, whatever the budget. */
  | "tooMany"
  /** It pays, and resets the connection instead of answering. */
  | "payThenReset"
  | "payThenSilence"
  | "payThenHtml"
  | "payThenHalf"
  | "payThenOwnError"
  /** It pays, and answers about another payment. */
  | "payThenForeign"
  | "resetBefore"
  | "silenceBefore"
  | "ownErrorBefore"
  /** The request arrives when the gateway does not wait for it any more, and pays then. */
  | "payLate"
  /** It pays, and answers slowly, sometimes after the gateway's timeout. */
  | "paySlowly";

/** When, how often and in which order the callbacks of a payment are sent. */
export type Callbacks = "early" | "soon" | "late" | "twice" | "never" | "reversed";

/** One step of a simulation, at `atMs`. */
export type Step =
  | PayStep
  | WatchStep
  | {
      readonly do: "look";
      readonly atMs: number;
      readonly externalId: string;
      readonly replica: number;
    }
  | {
      readonly do: "pause" | "kill";
      readonly atMs: number;
      readonly replica: number;
      readonly forMs: number;
    }
  /** Messages of one gateway, or of all, to the store are in trouble. */
  | {
      readonly do: "store";
      readonly atMs: number;
      readonly forMs: number;
      readonly replica: number | "all";
      readonly trouble: StoreTrouble;
      readonly share: number;
    }
  | {
      readonly do: "service";
      readonly atMs: number;
      readonly forMs: number;
      readonly trouble: "refuses" | "silent";
    }
  /** Nothing reaches the store's replica. */
  | { readonly do: "replica"; readonly atMs: number; readonly forMs: number }
  /** The store's replica replaces it; its clock is ahead by `aheadMs`, or behind if negative. */
  | { readonly do: "failOver"; readonly atMs: number; readonly aheadMs: number }
  /** From now on the service allows this many requests a second. */
  | { readonly do: "limit"; readonly atMs: number; readonly perSecond: number }
  /** Many cheap calls at once, to use the budget up. */
  | {
      readonly do: "rush";
      readonly atMs: number;
      readonly replica: number;
      readonly calls: number;
    };

export type StoreTrouble =
  | "stalls"
  | "losesRequests"
  | "losesAnswers"
  | "doubles"
  | "late"
  | "cuts";

export interface PayStep {
  readonly do: "pay";
  readonly atMs: number;
  /** The name of the request, which the service sees too. */
  readonly id: string;
  readonly method: Method;
  readonly externalId: string;
  readonly replica: number;
  readonly key?: string;
  readonly held?: boolean;
  readonly deadlineMs?: number;
  /** The caller leaves after this time. */
  readonly leavesAfterMs?: number;
  /** What the service does with each request of this name in turn; afterwards it pays. */
  readonly turns: readonly Turn[];
  readonly callbacks: Callbacks;
  /** How often the caller tries again after a definite failure. */
  readonly retries: number;
  /** Repeats of the same request with the same key, at these gateways. */
  readonly echoes: readonly { readonly afterMs: number; readonly replica: number }[];
}

export interface WatchStep {
  readonly do: "watch";
  readonly atMs: number;
  readonly id: string;
  /** Absent: everything of the account. */
  readonly externalId?: string;
  readonly replica: number;
  /** How long each connection lasts before it is cut; the last one stays. */
  readonly cutsAfterMs: readonly number[];
}

/** Everything that happens in one history, except what the code under test does. */
export interface Plan {
  readonly seed: number;
  readonly replicas: number;
  readonly perSecond: number;
  readonly steps: readonly Step[];
  /** Absent: the store has no replica. */
  readonly replication?: Replication;
  /** The service sends some answers twice. */
  readonly answersTwice?: boolean;
  /** How far the wall clock of each gateway is ahead of the true one; absent: none is. */
  readonly aheadMs?: readonly number[];
}

/** The replica of a store. */
export interface Replication {
  /** How much later a write reaches the replica. */
  readonly lagMs: number;
  /** The gateways wait until the replica holds what they acknowledge. */
  readonly waits: boolean;
}

/** The plans name payouts `out-…` and payments `order-…`. */
export function isPayout(externalId: string): boolean {
  return externalId.startsWith("out");
}

/** The plan of a seed. */
export function planOf(seed: number, { oneProcess = false, failsOver = false } = {}): Plan {
  const basic = basicPlanOf(seed, oneProcess);
  const answersTwice = new Random(seed, "answers").chance(0.1);
  const plan = answersTwice ? { ...basic, answersTwice } : basic;
  return failsOver ? withClocks(withFailOver(plan)) : plan;
}

/**
 * Gives half of the stores a replica that writers wait for, and that takes over in some histories.
 */
function withFailOver(plan: Plan): Plan {
  const random = new Random(plan.seed, "replica");
  if (random.chance(0.5)) return plan;
  const replication = { lagMs: random.pick([1, 20, 200, 600]), waits: true };
  const calls = plan.steps.filter((step) => step.do === "pay");
  const near = () =>
    random.pick(calls).atMs + Math.round(random.next() * random.pick([8, 60, 3_000]));
  const steps = Array.from({ length: random.pick([0, 1, 1, 2]) }, (): Step => {
    const atMs = near();
    return random.chance(0.3)
      ? { do: "replica", atMs, forMs: random.pick([700, 2_500, 8_000]) }
      : { do: "failOver", atMs, aheadMs: Math.round(random.between(-40, 40)) };
  });
  const all = [...plan.steps, ...steps].toSorted((a, b) => a.atMs - b.atMs);
  return { ...plan, replication, steps: all };
}

function withClocks(plan: Plan): Plan {
  const random = new Random(plan.seed, "clocks");
  if (random.chance(0.5)) return plan;
  const aheadMs = Array.from({ length: plan.replicas }, () =>
    Math.round(random.between(-1, 1) * random.pick([20, 500, 30_000])),
  );
  return { ...plan, aheadMs };
}

function basicPlanOf(seed: number, oneProcess: boolean): Plan {
  const random = new Random(seed, "plan");
  const replicas = oneProcess ? 1 : random.pick([1, 2, 2, 3]);
  const perSecond = random.pick([3, 5, 10, 50]);
  const lengthMs = random.pick([2_000, 6_000, 12_000]);
  const steps: Step[] = [];
  const at = () => Math.round(random.between(0, lengthMs));
  const replica = () => random.whole(0, replicas - 1);
  const troubled = random.chance(0.8);

  const subjects = random.whole(1, 3);
  for (let n = 0; n < subjects; n++) steps.push(...paymentsOf(n));
  for (let n = random.whole(0, 2); n > 0; n--) {
    steps.push({
      ...{ do: "watch", atMs: at(), id: `all-${n}`, replica: replica() },
      cutsAfterMs: cuts(),
    });
  }
  if (random.chance(0.25)) {
    steps.push({
      ...{ do: "rush", atMs: at(), replica: replica() },
      calls: random.whole(3, 2 * perSecond + 5),
    });
  }
  if (random.chance(0.15)) {
    steps.push({
      ...{ do: "limit", atMs: at() },
      perSecond: Math.max(1, Math.round(perSecond * random.pick([0.4, 2]))),
    });
  }
  const begun = steps.length;
  if (troubled) for (let n = random.whole(1, 3); n > 0; n--) steps.push(fault());
  for (const { atMs } of steps.slice(begun)) {
    if (random.chance(0.4)) steps.push(look(atMs + random.whole(0, 2_500)));
  }
  return {
    ...{ seed, replicas, perSecond },
    steps: steps
      .filter((step) => !oneProcess || !isBeyondPromise(step, steps))
      .toSorted((a, b) => a.atMs - b.atMs),
  };

  function cuts(): number[] {
    return Array.from({ length: random.pick([0, 1, 2, 4]) }, () =>
      Math.round(random.between(1, 4_000)),
    );
  }

  function paymentsOf(n: number): Step[] {
    const method = random.pick([
      ...(["CreatePayment", "CreatePayment", "CreatePayment"] as const),
      ...(["CreateRecurrentPayment", "RequestPayout", "RequestPayout"] as const),
    ]);
    const externalId = method === "RequestPayout" ? `out-${n}` : `order-${n}`;
    const held = method === "CreatePayment" && random.chance(0.3);
    const found: Step[] = [];
    const begins = at();
    const near = () => begins + Math.round(random.between(0, random.pick([20, 500, 5_000])));
    for (let attempt = random.pick([1, 1, 2, 3]); attempt > 0; attempt--) {
      found.push(pay(`${externalId}.${attempt}`, method, externalId, near(), held));
    }
    if (held) {
      for (let confirm = random.pick([1, 1, 2]); confirm > 0; confirm--) {
        const atMs = near() + random.whole(50, 4_000);
        found.push(pay(`${externalId}.c${confirm}`, "ConfirmPayment", externalId, atMs, false));
      }
    }
    for (let watcher = random.whole(0, 2); watcher > 0; watcher--) {
      found.push({
        ...{ do: "watch", atMs: near(), id: `${externalId}-w${watcher}`, externalId },
        ...{ replica: replica(), cutsAfterMs: cuts() },
      });
    }
    for (let looks = random.whole(0, 3); looks > 0; looks--) {
      found.push({
        do: "look",
        atMs: near() + random.whole(0, 8_000),
        externalId,
        replica: replica(),
      });
    }
    return found;
  }

  function pay(
    id: string,
    method: Method,
    externalId: string,
    atMs: number,
    held: boolean,
  ): PayStep {
    const key = random.chance(0.5) ? `key-${id}` : undefined;
    return {
      ...{ do: "pay", atMs, id, method, externalId, replica: replica() },
      ...(key !== undefined && { key }),
      ...(held && { held }),
      ...(random.chance(0.5) && { deadlineMs: random.pick([50, 400, 1_500, 4_000]) }),
      ...(random.chance(0.15) && { leavesAfterMs: random.pick([3, 30, 700, 2_500]) }),
      turns: Array.from({ length: random.pick([1, 1, 2]) }, () => random.pick(turns)),
      callbacks: random.pick(ways),
      retries: random.pick([0, 1, 2]),
      echoes: key
        ? Array.from({ length: random.pick([0, 1, 1, 2]) }, () => ({
            afterMs: Math.round(random.pick([0, 3, 300, 4_000, 9_000]) * random.next()),
            replica: replica(),
          }))
        : [],
    };
  }

  function look(atMs: number): Step {
    const calls = steps.filter((step) => step.do === "pay");
    return { do: "look", atMs, externalId: random.pick(calls).externalId, replica: replica() };
  }

  /** A fault is near a call in most cases: it finds more while something is under way. */
  function fault(): Step {
    const calls = steps.filter((step) => step.do === "pay");
    const call = random.pick(calls);
    const isNear = random.chance(0.6);
    const atMs = isNear
      ? call.atMs + Math.round(random.next() * random.pick([8, 60, 700, 3_000]))
      : at();
    const near = isNear && random.chance(0.7) ? call.replica : replica();
    const forMs = random.pick([100, 700, 2_500, 8_000, 14_000]);
    const kind = random.next();
    if (kind < 0.2) {
      return { do: "pause", atMs, forMs: random.chance(0.2) ? 60_000 : forMs, replica: near };
    }
    if (kind < 0.4) return { do: "kill", atMs, forMs, replica: near };
    if (kind < 0.55) {
      return { do: "service", atMs, forMs, trouble: random.pick(["refuses", "silent"]) };
    }
    return {
      ...{ do: "store", atMs, forMs, replica: random.chance(0.5) ? "all" : near },
      trouble: random.pick([
        ...(["stalls", "losesRequests", "losesAnswers", "doubles", "late", "cuts"] as const),
      ]),
      share: random.pick([0.1, 0.4, 1]),
    };
  }
}

/** A single process that dies loses what it could not write to its disk: no promise covers that. */
function isBeyondPromise(step: Step, steps: readonly Step[]): boolean {
  if (step.do !== "store" || !steps.some((other) => other.do === "kill")) return false;
  return step.trouble === "losesRequests" || step.trouble === "cuts";
}

const turns: readonly Turn[] = [
  ...(["pay", "pay", "pay", "pending", "pending", "pendingThenFail"] as const),
  ...(["decline", "declineAsData", "tooMany", "payThenReset", "payThenSilence"] as const),
  ...(["payThenHtml", "payThenHalf", "payThenOwnError", "payThenForeign", "resetBefore"] as const),
  ...(["silenceBefore", "ownErrorBefore", "payLate", "payLate", "paySlowly", "paySlowly"] as const),
];

const ways: readonly Callbacks[] = ["early", "soon", "soon", "late", "twice", "never", "reversed"];
