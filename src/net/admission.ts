/**
 * How the limits treat a call. Calls that move `money` are refused last. An `unknown` call is
 * admitted as if it moved money, before its body shows whether it does; `Slot.moneyOnly` says
 * whether it must. A `watch` opens a stream; calls go before it. An `exempt` call waits for its
 * turn, but it is never refused and not counted.
 */
export type CallKind = "other" | "money" | "unknown" | "watch" | "exempt";

/** One call's slot among those in flight. */
export interface Slot {
  /** The call was admitted only because it moves, or may move, money. */
  readonly moneyOnly: boolean;
  /** Gives the slot back. Further calls have no effect. */
  leave(): void;
  /** Stops counting the call while it waits for its client and costs the gateway no work. */
  suspend(): void;
  resume(): void;
}

/**
 * A call whose headers have arrived, before any work on it. It is either started, refused or, if
 * its client has left, dropped.
 */
export interface Arrival {
  readonly kind: CallKind;
  /** Its connection: connections take turns. */
  readonly owner: object;
  /** How long its client waits for the answer, in milliseconds, if the request says so. */
  readonly timeoutMs?: number | undefined;
  /** Whether its client has left: such a call is neither started nor refused in its turn. */
  readonly isGone: () => boolean;
  readonly start: (slot: Slot) => void;
  readonly refuse: () => void;
}

/** Starts calls in turn, and refuses those that are more than the process can serve. */
export interface Admission {
  enter(arrival: Arrival): void;
  readonly inFlight: number;
}

export interface AdmissionOptions {
  /** Most calls in flight at once; with `undefined`, no call is refused. */
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
/**
 * Longest waits for a turn: of other calls and of those that move money while there is a standing
 * queue, of every call at any time (`burst`), and of watches.
 */
const maxQueueMs = { other: 10, money: 25, burst: 3_000, watch: 10_000 } as const;
/**
 * Share of its client's time-out that a call may spend waiting for its turn. A wait of up to
 * `maxQueueMs.other` never counts as too long: a call with a very short time-out then ends by its
 * own deadline, and does not report an overload that does not exist.
 */
const shareOfWaiting = 0.4;
/** A call that is already in the queue is refused only at this many times the longest wait. */
const lateFactor = 1.75;
/** A connection with only one waiting call does not cause the queue: its call may wait longer. */
const lonelyFactor = 4;
/**
 * Calls that are late for this long show an overload, not a burst. A burst is served completely:
 * for example, thousands of calls that wait for the first answer to one Idempotency-Key.
 */
const standingMs = 3_000;
/** A standing queue is over when no call was late for this long. */
const overMs = 1_000;
/** Weight that the measured cost of earlier calls keeps after each further call. */
const memory = 0.995;
/** Most calls that a turn of the event loop starts, and the time after which it starts no more. */
const perTurn = 16;
const turnMs = 10;
/** While both calls and watches wait, one of this many starts is a watch. */
const watchEvery = 4;

/**
 * Puts calls in a queue. Each turn of the event loop starts a few of them and takes the connections
 * in turn, so that a connection with a thousand calls at once delays only itself, and a call that
 * is reset while it waits costs next to nothing. Calls are refused, other calls before those that
 * move money:
 * - beyond `maxCalls` in flight, which bounds memory and the calls that pile up behind a slow
 *   upstream;
 * - when their wait for a turn, as expected from the cost of recent calls or as measured, is too
 *   long for their client's deadline or for any burst (a burst is served completely). Once calls
 *   have been late for three seconds, so that the process is overloaded, the shorter limits of
 *   `maxQueueMs` apply. These limits need no setting: the wait follows what calls cost on the
 *   machine.
 *
 * Watches have a queue of their own. When a replica dies, its thousands of watches arrive here at
 * once: calls do not wait behind them, and they are no sign that the process has too many calls. A
 * watch may wait longer, because its client waits for no answer and would only connect again if it
 * were refused.
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
  /** Steps planned for the next turn, those left of this one, and this turn's start and limit. */
  let planned = 0;
  let left = 0;
  let sinceMs = 0;
  let untilMs = 0;
  /** Calls of the last turn, 0 after an idle one; recent calls, and how long they took. */
  let taken = 0;
  const lately = { calls: 100, ms: 50 };

  /**
   * Which calls are admitted that have waited, or are expected to wait, for `waitMs`. `ahead`
   * counts the other waiting calls of their connection.
   */
  function admitted(waitMs: number, ahead: number, timeoutMs = Number.POSITIVE_INFINITY): Admitted {
    if (maxCalls === undefined || maxOtherCalls === undefined) return "all";
    const inTimeMs = Math.max(timeoutMs * shareOfWaiting, maxQueueMs.other);
    if (inFlight >= maxCalls || waitMs > inTimeMs || waitMs > maxQueueMs.burst) return "none";
    // However late the calls are, each turn must have some to start: the last few are not shed.
    const sheds = standing && calls.size >= perTurn;
    const countedMs = sheds ? waitMs / (ahead > 0 ? 1 : lonelyFactor) : 0;
    if (countedMs > maxQueueMs.money) return "none";
    if (inFlight >= maxOtherCalls || countedMs > maxQueueMs.other) return "money";
    return "all";
  }

  /** Whether a watch is admitted after such a wait. */
  function admitsWatch(waitMs: number, timeoutMs = Number.POSITIVE_INFINITY): boolean {
    if (maxCalls === undefined || maxOtherCalls === undefined) return true;
    const inTimeMs = Math.max(timeoutMs * shareOfWaiting, maxQueueMs.other);
    const isLate = waitMs > maxQueueMs.watch || waitMs > inTimeMs;
    return !isLate && inFlight < maxOtherCalls;
  }

  /** Expected wait of a call behind `ahead` others of its connection. */
  function expectedMs(line: Line, ahead: number): number {
    // Connections take turns: the call and each one ahead of it wait for a round over all of them.
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

  /** Each call starts in its own callback: its work is done before the next checks the time. */
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
    // No turn follows at once: the idle time until the next one is no cost of these calls.
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
    // A connection's only call being on time does not show that connections with many calls are.
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

/** A queue of waiting calls or watches, in which connections take turns. */
interface Line {
  readonly size: number;
  /** Number of connections in the queue. */
  readonly owners: number;
  /** Number of one connection's entries. */
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
      // The owner goes to the end of the queue.
      queues.delete(owner);
      if (queue.length > 0) queues.set(owner, queue);
      return waiting;
    },
  };
}

/** A slot that counts against no limit. */
export const freeSlot: Slot = { moneyOnly: false, leave() {}, suspend() {}, resume() {} };

const processClock: Clock = {
  now: () => performance.now(),
  nextTurn: (callback) => void setImmediate(callback),
};
