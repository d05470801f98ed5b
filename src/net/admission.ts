/**
 * What a call is to the limits: one that moves money is refused last. `unknown` is a call whose body
 * will tell: it gets in as if it moved money, and its slot tells whether it must. A `watch` opens a
 * stream: it lets calls go before it. One that is `exempt` waits for its turn, and that is all.
 */
export type CallKind = "other" | "money" | "unknown" | "watch" | "exempt";

/** One call's slot among those in flight. */
export interface Slot {
  /** The call got in only because it moves money, or may. */
  readonly moneyOnly: boolean;
  /** Gives the slot back; once is enough. */
  leave(): void;
  /** The call waits for its client, whose time is no work of ours: it does not count meanwhile. */
  suspend(): void;
  resume(): void;
}

/** A call whose headers are there, before anything is spent on it. Exactly one of the three follows. */
export interface Arrival {
  readonly kind: CallKind;
  /** Its connection: connections take turns. */
  readonly owner: object;
  /** How long its client waits for the answer, in milliseconds, where it says so. */
  readonly timeoutMs?: number | undefined;
  /** Its client has left already: it is neither started nor refused. */
  readonly isGone: () => boolean;
  readonly start: (slot: Slot) => void;
  readonly refuse: () => void;
}

/** Where calls begin, or are refused because the process has more than it can serve. */
export interface Admission {
  enter(arrival: Arrival): void;
  readonly inFlight: number;
}

export interface AdmissionOptions {
  /** Calls in flight at once; `undefined` refuses none. */
  readonly maxCalls: number | undefined;
  readonly clock?: Clock;
}

export interface Clock {
  /** Monotonic, in milliseconds. */
  readonly now: () => number;
  /** Calls back in the next turn of the event loop. */
  readonly nextTurn: (callback: () => void) => void;
}

/** Share of `maxCalls` that calls which move no money may fill. */
const shareOfOthers = 0.8;
/** Longest wait for a turn while there is a standing queue, and while there is none. */
const maxQueueMs = { other: 10, money: 25, burst: 3_000, watch: 10_000 } as const;
/**
 * Share of the time that a client gives its call which may go by before the call begins. A wait that
 * is short by itself is never too long: such a call ends by its own deadline, and nobody is told of
 * an overload that is none.
 */
const shareOfWaiting = 0.4;
/** A call that was let in waits longer than was expected before it is refused after all. */
const lateFactor = 1.75;
/** A connection that has but one call waiting is not what the queue comes from: it waits longer. */
const lonelyFactor = 4;
/**
 * Calls that were late for so long come of no burst: thousands at once, that wait for the first answer
 * to an Idempotency-Key say, are one, and are served whole.
 */
const standingMs = 3_000;
/** When no call was late for so long, it is over. */
const overMs = 1_000;
/** How much of what was learned of earlier calls still counts after one more. */
const memory = 0.995;
/** Calls that are begun in one turn of the event loop, and the time after which no more are. */
const perTurn = 16;
const turnMs = 10;
/** Of so many that are begun while calls and watches wait, one is a watch. */
const watchEvery = 4;

/**
 * Calls wait for their turn: each turn of the event loop begins a few of them, one connection's after
 * another's, so that one that sends a thousand at once holds up itself, and calls that are reset
 * meanwhile cost next to nothing. Two things are refused, other calls before those that move money.
 * Calls in flight beyond `maxCalls`, which bounds memory and what piles up behind a slow upstream.
 * And those whose turn will come, by what calls have taken lately, or did come, too late: for their
 * client's deadline, or for a burst, which is served whole; and once calls have been late for three
 * seconds, so that the process is beyond its peak, beyond `maxQueueMs`. The second needs no number of
 * the operator's: it follows what calls cost on the machine.
 *
 * Watches stand in a line of their own. When a replica dies, its thousands come here at once: no call
 * waits behind them, and they are no sign that the process has too many calls. Nobody who watches
 * waits for an answer, and to refuse one only brings it back, so they wait longer.
 */
export function createAdmission({ maxCalls, clock = processClock }: AdmissionOptions): Admission {
  const calls = createLine();
  const watches = createLine();
  const maxOtherCalls = maxCalls === undefined ? undefined : maxCalls * shareOfOthers;
  let inFlight = 0;
  let begun = 0;
  let lastLateMs = Number.NEGATIVE_INFINITY;
  let lastOnTimeMs = clock.now();
  let standing = false;
  /** Steps of the next turn of the loop, those left of this one, and its times. */
  let planned = 0;
  let left = 0;
  let sinceMs = 0;
  let untilMs = 0;
  /** Calls of the last turn, if this one follows at once; those of late, and how long they took. */
  let taken = 0;
  const lately = { calls: 100, ms: 50 };

  /** Which calls of a client may go on that have waited, or would wait, so long. */
  function admitted(waitMs: number, ahead: number, timeoutMs = Number.POSITIVE_INFINITY): Admitted {
    if (maxCalls === undefined || maxOtherCalls === undefined) return "all";
    const inTimeMs = Math.max(timeoutMs * shareOfWaiting, maxQueueMs.other);
    if (inFlight >= maxCalls || waitMs > inTimeMs || waitMs > maxQueueMs.burst) return "none";
    // However late they all are, each turn has some to begin.
    const sheds = standing && calls.size >= perTurn;
    const countedMs = sheds ? waitMs / (ahead > 0 ? 1 : lonelyFactor) : 0;
    if (countedMs > maxQueueMs.money) return "none";
    if (inFlight >= maxOtherCalls || countedMs > maxQueueMs.other) return "money";
    return "all";
  }

  /** The same of a watch. */
  function admitsWatch(waitMs: number, timeoutMs = Number.POSITIVE_INFINITY): boolean {
    if (maxCalls === undefined || maxOtherCalls === undefined) return true;
    const inTimeMs = Math.max(timeoutMs * shareOfWaiting, maxQueueMs.other);
    const isLate = waitMs > maxQueueMs.watch || waitMs > inTimeMs;
    return !isLate && inFlight < maxOtherCalls;
  }

  /** How long the call would wait that comes after so many of its connection's. */
  function expectedMs(line: Line, ahead: number): number {
    // It goes to the end of the line, and again for each that is before it on its own connection.
    const before = Math.min(line.size, (ahead + 1) * line.owners);
    return (before * lately.ms) / lately.calls;
  }

  /** Updates whether a standing queue exists. */
  function observe(isLate: boolean): void {
    const nowMs = clock.now();
    if (isLate) lastLateMs = nowMs;
    else lastOnTimeMs = nowMs;
    standing = standing ? nowMs - lastLateMs < overMs : nowMs - lastOnTimeMs >= standingMs;
  }

  const refuses = (which: Admitted, kind: CallKind) =>
    kind !== "exempt" && (which === "none" || (which === "money" && kind === "other"));

  /** Each call is begun in a callback of its own, whose work is done before the next looks at the time. */
  function plan(): void {
    for (; planned < Math.min(calls.size + watches.size, perTurn); planned++) clock.nextTurn(step);
  }

  function step(): void {
    const first = left === 0;
    if (first) {
      const nowMs = clock.now();
      if (taken > 0) {
        lately.calls = lately.calls * memory ** taken + taken;
        lately.ms = lately.ms * memory ** taken + (nowMs - sinceMs);
      }
      taken = 0;
      left = planned;
      planned = 0;
      sinceMs = nowMs;
      untilMs = nowMs + turnMs;
    }
    left -= 1;
    if (first || clock.now() < untilMs) beginNext();
    if (left > 0) return;
    plan();
    // Between this turn and one that comes later, the process had nothing to do.
    if (planned === 0) taken = 0;
  }

  /** Begins one call or watch, and refuses those before it that have waited too long. */
  function beginNext(): void {
    begun += 1;
    const isWatchesTurn = begun % watchEvery === 0;
    do {
      const isWatch = watches.size > 0 && (isWatchesTurn || calls.size === 0);
      if (isWatch ? beginWatch() : beginCall()) return;
    } while (clock.now() < untilMs);
  }

  /** @returns false when the next one was not begun: it was refused, or is gone */
  function beginCall(): boolean {
    const next = calls.shift();
    if (!next) return true;
    const { arrival, atMs } = next;
    const behind = calls.of(arrival.owner);
    const waitedMs = clock.now() - atMs;
    const isLate = waitedMs > maxQueueMs.other;
    taken += 1;
    // A neighbour that is on time does not show that those with many calls are.
    if (isLate || behind > 0 || calls.size === 0) observe(isLate);
    const which = admitted(waitedMs / lateFactor, behind, arrival.timeoutMs);
    if (arrival.isGone()) return false;
    if (refuses(which, arrival.kind)) {
      arrival.refuse();
      return false;
    }
    arrival.start(arrival.kind === "exempt" ? freeSlot : slotOf(which === "money"));
    return true;
  }

  function beginWatch(): boolean {
    const { arrival, atMs } = watches.shift() as Waiting;
    taken += 1;
    if (arrival.isGone()) return false;
    if (!admitsWatch(clock.now() - atMs, arrival.timeoutMs)) {
      arrival.refuse();
      return false;
    }
    arrival.start(slotOf(false));
    return true;
  }

  function slotOf(moneyOnly: boolean): Slot {
    inFlight += 1;
    let counted = true;
    let isOver = false;
    const suspend = () => {
      if (counted) inFlight -= 1;
      counted = false;
    };
    return {
      moneyOnly,
      suspend,
      resume() {
        if (counted || isOver) return;
        counted = true;
        inFlight += 1;
      },
      leave() {
        isOver = true;
        suspend();
      },
    };
  }

  return {
    enter(arrival) {
      const { kind, owner, timeoutMs } = arrival;
      const line = kind === "watch" ? watches : calls;
      const ahead = line.of(owner);
      const waitMs = expectedMs(line, ahead);
      const isRefused =
        kind === "watch"
          ? !admitsWatch(waitMs, timeoutMs)
          : refuses(admitted(waitMs, ahead, timeoutMs), kind);
      if (isRefused) {
        arrival.refuse();
        return;
      }
      if (line === calls && calls.size === 0) observe(false);
      line.push({ arrival, atMs: clock.now() });
      if (left === 0) plan();
    },
    get inFlight() {
      return inFlight;
    },
  };
}

type Admitted = "none" | "money" | "all";

interface Waiting {
  readonly arrival: Arrival;
  readonly atMs: number;
}

/** Those that wait, in order; connections take turns. */
interface Line {
  readonly size: number;
  /** Connections. */
  readonly owners: number;
  /** How many of one connection's wait. */
  of(owner: object): number;
  push(waiting: Waiting): void;
  shift(): Waiting | undefined;
}

function createLine(): Line {
  const queues = new Map<object, Waiting[]>();
  let size = 0;
  return {
    get size() {
      return size;
    },
    get owners() {
      return queues.size;
    },
    of: (owner) => queues.get(owner)?.length ?? 0,
    push(waiting) {
      size += 1;
      const queue = queues.get(waiting.arrival.owner);
      if (queue) queue.push(waiting);
      else queues.set(waiting.arrival.owner, [waiting]);
    },
    shift() {
      const next = queues.entries().next().value;
      if (!next) return undefined;
      const [owner, queue] = next;
      const waiting = queue.shift() as Waiting;
      size -= 1;
      // The owner goes to the end of the line.
      queues.delete(owner);
      if (queue.length > 0) queues.set(owner, queue);
      return waiting;
    },
  };
}

/** A slot that nothing bounds. */
export const freeSlot: Slot = { moneyOnly: false, leave() {}, suspend() {}, resume() {} };

const processClock: Clock = {
  now: () => performance.now(),
  nextTurn: (callback) => void setImmediate(callback),
};
