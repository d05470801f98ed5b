import type { Account } from "./merchant.ts";
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
  /**
   * The request arrives when the service has denied twice to know it, if that is 20 s after it was
   * sent: when the gateway may already be about to conclude that it was never sent.
   */
  | "payOnceDenied"
  /** It pays, and answers slowly, sometimes after the gateway's timeout. */
  | "paySlowly";

/** When, how often and in which order the callbacks of a payment are sent. */
export type Callbacks = "early" | "soon" | "late" | "twice" | "never" | "reversed";

/** One step of a simulation, at `atMs`. */
export type Step = PayStep | WatchStep | ({ readonly atMs: number } & Readonly<OtherStep>);

type OtherStep =
  | { do: "look"; account?: Account; externalId: string; replica: number }
  /**
   * - `suspend`: the whole machine stands still, and so does its monotonic clock;
   * - `powerOff`: what the disk has not flushed is lost.
   */
  | { do: "pause" | "suspend" | "kill" | "powerOff"; replica: number; forMs: number }
  /** What happens at the service without a call of a gateway; its callbacks tell of it. */
  | { do: "elsewhere"; account?: Account; externalId: string; what: Elsewhere }
  /** Many callbacks at once, of payments that no gateway made: of one external_id, or of many. */
  | { do: "burst"; account?: Account; externalId?: string; callbacks: number }
  /** Somebody comes with text that is no cursor, or with the cursor of another account. */
  | { do: "misread"; replica: number }
  /** Messages of one gateway, or of all, to the store are in trouble. */
  | { do: "store"; forMs: number; replica: number | "all"; trouble: StoreTrouble; share: number }
  | { do: "service"; forMs: number; trouble: "refuses" | "silent" }
  /** Nothing reaches the store's replica. */
  | { do: "replica"; forMs: number }
  /** The store's replica replaces it; its clock is ahead by `aheadMs`, or behind if negative. */
  | { do: "failOver"; aheadMs: number }
  /** From now on the service allows this many requests a second. */
  | { do: "limit"; perSecond: number }
  /** Many cheap calls at once, to use the budget up. */
  | { do: "rush"; replica: number; calls: number };

/** `pay`: another client of the merchant makes a payout or payment of the same external_id. */
export type Elsewhere = "pay" | "refund" | "refundPart" | "refundFails" | "cancel";

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
  readonly account?: Account;
  readonly method: Method;
  readonly externalId: string;
  readonly replica: number;
  readonly key?: string;
  readonly held?: boolean;
  /** The call answers when it has come so far. */
  readonly waits?: "ACTION" | "SETTLED";
  readonly deadlineMs?: number;
  /** The caller leaves after this time. */
  readonly leavesAfterMs?: number;
  /** What the service does with each request of this name in turn; afterwards it pays. */
  readonly turns: readonly Turn[];
  readonly callbacks: Callbacks;
  /** How often the caller tries again after a definite failure. */
  readonly retries: number;
  /** Repeats of the same request with the same key, at these gateways. */
  readonly echoes: readonly Echo[];
}

export interface Echo {
  readonly afterMs: number;
  readonly replica: number;
  /** It does not leave, even if the first caller does. */
  readonly stays?: boolean;
}

export interface WatchStep {
  readonly do: "watch";
  readonly atMs: number;
  readonly id: string;
  readonly account?: Account;
  /** The watch ends with the payment. */
  readonly untilFinal?: boolean;
  /** The watch begins with the oldest event. */
  readonly fromStart?: boolean;
  /** The share of events that the edge can write at once. */
  readonly pushes?: number;
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
  /**
   * How much later the disk of an embedded store writes what it says it has written; a power failure
   * loses what it has not. Absent: it does not lie.
   */
  readonly flushesAfterMs?: number;
  /** The service sends some answers twice. */
  readonly answersTwice?: boolean;
  /** How far the wall clock of each gateway is ahead of the true one; absent: none is. */
  readonly aheadMs?: readonly number[];
}

/** The replicas of a store. */
export interface Replication {
  /** Default: one. If there are more, Sentinels promote any of them, and all must hold a write. */
  readonly replicas?: number;
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
  const plan = widened(answersTwice ? { ...basic, answersTwice } : basic, oneProcess);
  return failsOver ? withClocks(withFailOver(plan)) : plan;
}

/** What is rarer: each part has random numbers of its own, so that it leaves the others as they are. */
function widened(plan: Plan, oneProcess: boolean): Plan {
  const first = [calmed, waiting, pushed, sharedKeys, mixedHolds, takenBack, secondAccount];
  let steps = plan.steps;
  for (const widen of [...first, lateArrivals, suspended, burst, misread]) {
    steps = widen(steps, new Random(plan.seed, widen.name), plan);
  }
  if (oneProcess) steps = poweredOff(steps, new Random(plan.seed, "power"));
  return { ...plan, steps: steps.toSorted((a, b) => a.atMs - b.atMs) };
}

type Widen = (steps: readonly Step[], random: Random, plan: Plan) => readonly Step[];

function isPay(step: Step): step is PayStep {
  return step.do === "pay";
}

/** In some histories nothing fails, so that all that is asked for must succeed. */
const calmed: Widen = (steps, random) => {
  if (!random.chance(0.15)) return steps;
  return steps
    .filter((step) => !faults.has(step.do))
    .map((step) => {
      if (!isPay(step)) return step;
      const { deadlineMs: _, ...unlimited } = step;
      return { ...unlimited, turns: step.turns.map((turn) => (calm.has(turn) ? turn : "pay")) };
    });
};

const faults: ReadonlySet<string> = new Set(["pause", "kill", "store", "service", "limit"]);
const calm: ReadonlySet<Turn> = new Set<Turn>([
  ...(["pending", "pendingThenFail", "decline", "declineAsData", "payThenReset"] as const),
  ...(["silenceBefore", "tooMany"] as const),
]);

const waiting: Widen = (steps, random) =>
  steps.map((step) => {
    if (step.do === "watch" && step.externalId !== undefined && random.chance(0.3)) {
      return { ...step, untilFinal: true };
    }
    if (!isPay(step) || !random.chance(0.2)) return step;
    const waits = random.pick(["ACTION", "SETTLED", "SETTLED"] as const);
    // Without a deadline, or with a long one: else the wait ends before anything happens.
    return { ...step, waits, ...(step.deadlineMs && { deadlineMs: random.pick([4_000, 12_000]) }) };
  });

const pushed: Widen = (steps, random) =>
  steps.map((step) =>
    step.do === "watch" && random.chance(0.5) ? { ...step, pushes: random.pick([0.5, 1]) } : step,
  );

/** Keys that are used for another request or by another method, and callers who leave together. */
const sharedKeys: Widen = (steps, random, { replicas }) => {
  const more: Step[] = [];
  const all = steps.map((step) => {
    if (!isPay(step) || step.key === undefined) return step;
    if (random.chance(0.15)) {
      const isOther = random.chance(0.5);
      more.push({
        ...step,
        ...{ id: `${step.id}k`, atMs: step.atMs + random.pick([0, 1, 40, 2_500]), retries: 0 },
        ...{
          echoes: [],
          replica: random.chance(0.5) ? step.replica : random.whole(0, replicas - 1),
        },
        ...(isOther && { method: "RequestPayout", externalId: "out-9", held: false }),
      });
    }
    if (!random.chance(0.2)) return step;
    const { replica, leavesAfterMs = random.pick([1, 4, 30]) } = step;
    return {
      ...step,
      leavesAfterMs,
      echoes: [{ afterMs: 0, replica, stays: true }, ...step.echoes],
    };
  });
  return [...all, ...more];
};

/** Before some payments the same one is asked for with `confirm: false`, and is declined. */
const mixedHolds: Widen = (steps, random) => {
  const more = steps.filter(isPay).flatMap((step): PayStep[] => {
    const { externalId, atMs, replica } = step;
    if (step.method !== "CreatePayment" || step.held || atMs < 500) return [];
    if (!random.chance(0.15)) return [];
    const declined = { retries: 0, echoes: [], callbacks: "never", turns: ["decline"] } as const;
    const { method } = step;
    const about = { method, externalId, replica, held: true } as const;
    return [{ do: "pay", id: `${step.id}h`, atMs: atMs - 450, ...about, ...declined }];
  });
  return [...steps, ...more];
};

/** Refunds and cancellations, and payouts that another client of the merchant makes. */
const takenBack: Widen = (steps, random) => {
  const more: Step[] = [];
  for (const step of steps) {
    if (!isPay(step) || !random.chance(0.15)) continue;
    const { externalId, atMs } = step;
    if (isPayout(externalId) || step.method === "CreateRecurrentPayment") {
      // Its callback comes before the call, or it could be taken for that of the call.
      const isEarlier = ({ atMs: other }: Step) => other < atMs;
      const isFirst = !steps.some(
        (other) => isPay(other) && other.externalId === externalId && isEarlier(other),
      );
      const isQuiet = !steps.some((other) => faults.has(other.do) && isEarlier(other));
      if (isFirst && isQuiet && atMs > 700) {
        more.push({ do: "elsewhere", atMs: atMs - 600, externalId, what: "pay" });
      }
      continue;
    }
    for (let n = random.pick([1, 1, 2, 3]); n > 0; n--) {
      const what = random.pick(takingBack);
      more.push({ do: "elsewhere", atMs: atMs + random.whole(100, 9_000), externalId, what });
    }
  }
  return [...steps, ...more];
};

const takingBack: readonly Elsewhere[] = [
  ...(["refund", "refundPart", "refundPart", "refundFails", "cancel"] as const),
];

/** The same external_ids and keys in another account, at the same time. */
const secondAccount: Widen = (steps, random) => {
  if (!random.chance(0.15)) return steps;
  const account = "kiosk";
  const copies = steps.flatMap((step): Step[] => {
    const atMs = Math.max(0, step.atMs + random.whole(-3, 3));
    switch (step.do) {
      case "pay":
        return random.chance(0.7) ? [{ ...step, account, atMs, id: `k-${step.id}` }] : [];
      case "watch":
        return [{ ...step, account, atMs, id: `k-${step.id}` }];
      case "look":
      case "elsewhere":
        return [{ ...step, account, atMs }];
      default:
        return [];
    }
  });
  return [...steps, ...copies];
};

const lateArrivals: Widen = (steps, random) =>
  steps.map((step) => {
    if (!isPay(step) || step.method === "CreateRecurrentPayment") return step;
    const [first, ...rest] = step.turns;
    if (first === undefined || !random.chance(0.04)) return step;
    return { ...step, turns: ["payOnceDenied", ...rest] };
  });

const suspended: Widen = (steps, random) =>
  steps.map((step) =>
    step.do === "pause" && random.chance(0.4) ? { ...step, do: "suspend" } : step,
  );

/** More events than one page of the log holds. */
const burst: Widen = (steps, random, { replicas }) => {
  if (!random.chance(0.012)) return steps;
  const externalId = random.chance(0.5) ? "x-0" : undefined;
  const atMs = random.whole(100, 2_000);
  const watch = (id: string, more: Partial<WatchStep>): Step => ({
    ...{ do: "watch", atMs: atMs - 50, id, replica: random.whole(0, replicas - 1) },
    ...(externalId && random.chance(0.7) && { externalId }),
    // Back when all of them are stored.
    cutsAfterMs: [random.whole(20, 60)],
    ...more,
  });
  return [
    ...steps,
    { do: "burst", atMs, callbacks: random.whole(270, 600), ...(externalId && { externalId }) },
    watch("burst-1", {}),
    watch("burst-2", { atMs: atMs + 4_000, ...(externalId && { externalId, fromStart: true }) }),
  ];
};

const misread: Widen = (steps, random, { replicas }) =>
  random.chance(0.3)
    ? [
        ...steps,
        { do: "misread", atMs: random.whole(0, 9_000), replica: random.whole(0, replicas - 1) },
      ]
    : steps;

function poweredOff(steps: readonly Step[], random: Random): readonly Step[] {
  return steps.map((step) =>
    step.do === "kill" && random.chance(0.5) ? { ...step, do: "powerOff" } : step,
  );
}

/**
 * Gives half of the stores a replica that writers wait for, and that takes over in some histories.
 */
function withFailOver(plan: Plan): Plan {
  const random = new Random(plan.seed, "replica");
  if (random.chance(0.5)) return plan;
  // What is told of one payment is stored one after another, each when the replica has the last one:
  // the service would give hundreds of its callbacks up.
  const isBurst = plan.steps.some((step) => step.do === "burst" && step.externalId !== undefined);
  const lagMs = Math.min(random.pick([1, 20, 200, 600]), isBurst ? 1 : 600);
  const replicas = new Random(plan.seed, "replicas").pick([1, 2]);
  const replication = { lagMs, waits: true, ...(replicas > 1 && { replicas }) };
  const calls = plan.steps.filter((step) => step.do === "pay");
  const near = () =>
    random.pick(calls).atMs + Math.round(random.next() * random.pick([8, 60, 3_000]));
  const steps = Array.from({ length: random.pick([0, 1, 1, 2]) }, (): Step => {
    const atMs = near();
    return random.chance(0.3)
      ? { do: "replica", atMs, forMs: random.pick([700, 2_500, 8_000]) }
      : // No two servers' clocks differ by more than the margin with which a token returns, 50 ms.
        { do: "failOver", atMs, aheadMs: Math.round(random.between(-25, 25)) };
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
    const about = { atMs: at(), id: `all-${n}`, replica: replica() };
    steps.push({ do: "watch", ...about, cutsAfterMs: cuts() });
  }
  if (random.chance(0.25)) {
    const about = { atMs: at(), replica: replica() };
    steps.push({ do: "rush", ...about, calls: random.whole(3, 2 * perSecond + 5) });
  }
  if (random.chance(0.15)) {
    const about = { do: "limit", atMs: at() } as const;
    const changed = Math.round(perSecond * random.pick([0.4, 2]));
    steps.push({ ...about, perSecond: Math.max(1, changed) });
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
      const atMs = near() + random.whole(0, 8_000);
      found.push({ do: "look", atMs, externalId, replica: replica() });
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
