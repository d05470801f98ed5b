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
  return new Queues(maxCalls, clock);
}

class Queues implements Admission {
  readonly #calls = new Line();
  readonly #watches = new Line();
  readonly #maxCalls: number | undefined;
  readonly #clock: Clock;
  readonly #turns: Turns;
  readonly #standing: StandingQueue;
  #inFlight = 0;

  constructor(maxCalls: number | undefined, clock: Clock) {
    this.#maxCalls = maxCalls;
    this.#clock = clock;
    this.#standing = new StandingQueue(clock.now());
    this.#turns = new Turns(clock, this);
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get waiting(): number {
    return this.#calls.size + this.#watches.size;
  }

  enter(arrival: Arrival): void {
    const isWatch = arrival.kind === "watch";
    const line = isWatch ? this.#watches : this.#calls;
    const ahead = line.of(arrival.owner);
    // Connections take turns: the call and each one ahead of it wait for a round over all of them.
    const waitMs = this.#turns.costMs(Math.min(line.size, (ahead + 1) * line.owners));
    const isRefused = isWatch
      ? !this.#admitsWatch(waitMs, arrival.timeoutMs)
      : refuses(this.#admitted(waitMs, ahead, arrival.timeoutMs), arrival.kind);
    if (isRefused) {
      arrival.refuse();
      return;
    }
    const atMs = this.#clock.now();
    if (!isWatch && line.size === 0) this.#standing.observe(false, atMs);
    line.push({ arrival, atMs });
    this.#turns.plan();
  }

  /**
   * Which calls are admitted that have waited, or are expected to wait, for `waitMs`. `ahead`
   * counts the other waiting calls of their connection.
   */
  #admitted(waitMs: number, ahead: number, timeoutMs?: number): Admitted {
    const maxCalls = this.#maxCalls;
    if (maxCalls === undefined) return "all";
    if (this.#inFlight >= maxCalls || isTooLate(waitMs, maxQueueMs.burst, timeoutMs)) return "none";
    // However late the calls are, each turn must have some to start: the last few are not shed.
    const sheds = this.#standing.exists && this.#calls.size >= perTurn;
    const countedMs = sheds ? waitMs / (ahead > 0 ? 1 : lonelyFactor) : 0;
    if (countedMs > maxQueueMs.money) return "none";
    const isFull = this.#inFlight >= maxCalls * shareOfOthers;
    return isFull || countedMs > maxQueueMs.other ? "money" : "all";
  }

  /** Whether a watch is admitted after such a wait. */
  #admitsWatch(waitMs: number, timeoutMs?: number): boolean {
    if (this.#maxCalls === undefined) return true;
    const isFull = this.#inFlight >= this.#maxCalls * shareOfOthers;
    return !isFull && !isTooLate(waitMs, maxQueueMs.watch, timeoutMs);
  }

  /** Begins the nth call or watch, and refuses those before it that have waited too long. */
  beginNext(nth: number): void {
    const isWatchesTurn = nth % watchEvery === 0;
    do {
      const isWatch = this.#watches.size > 0 && (isWatchesTurn || this.#calls.size === 0);
      if (isWatch ? this.#beginWatch() : this.#beginCall()) return;
    } while (this.#turns.hasTime());
  }

  /** @returns false when the next one was not begun: it was refused, or is gone */
  #beginCall(): boolean {
    const next = this.#calls.shift();
    if (!next) return true;
    const { arrival, atMs } = next;
    const behind = this.#calls.of(arrival.owner);
    const nowMs = this.#clock.now();
    const waitedMs = nowMs - atMs;
    const isLate = waitedMs > maxQueueMs.other;
    this.#turns.took();
    // A connection's only call being on time does not show that connections with many calls are.
    if (isLate || behind > 0 || this.#calls.size === 0) this.#standing.observe(isLate, nowMs);
    const which = this.#admitted(waitedMs / lateFactor, behind, arrival.timeoutMs);
    return this.#begin(arrival, refuses(which, arrival.kind), which === "money");
  }

  #beginWatch(): boolean {
    const { arrival, atMs } = this.#watches.shift() as Waiting;
    this.#turns.took();
    const admits = this.#admitsWatch(this.#clock.now() - atMs, arrival.timeoutMs);
    return this.#begin(arrival, !admits, false);
  }

  #begin(arrival: Arrival, isRefused: boolean, moneyOnly: boolean): boolean {
    if (arrival.isGone()) return false;
    if (isRefused) {
      arrival.refuse();
      return false;
    }
    arrival.start(arrival.kind === "exempt" ? freeSlot : this.#slot(moneyOnly));
    return true;
  }

  #slot(moneyOnly: boolean): Slot {
    this.#inFlight += 1;
    let counted = true;
    let isOver = false;
    const suspend = () => {
      if (counted) this.#inFlight -= 1;
      counted = false;
    };
    return {
      moneyOnly,
      suspend,
      resume: () => {
        if (counted || isOver) return;
        counted = true;
        this.#inFlight += 1;
      },
      leave() {
        isOver = true;
        suspend();
      },
    };
  }
}

function refuses(which: Admitted, kind: CallKind): boolean {
  return kind !== "exempt" && (which === "none" || (which === "money" && kind === "other"));
}

/** Whether a wait is too long for any burst, or for the client. */
function isTooLate(waitMs: number, maxMs: number, timeoutMs = Number.POSITIVE_INFINITY): boolean {
  return waitMs > maxMs || waitMs > Math.max(timeoutMs * shareOfWaiting, maxQueueMs.other);
}

/** Tells a standing queue, in which calls have been late for a while, from a burst. */
class StandingQueue {
  #lastLateMs = Number.NEGATIVE_INFINITY;
  #lastOnTimeMs: number;
  exists = false;

  constructor(nowMs: number) {
    this.#lastOnTimeMs = nowMs;
  }

  observe(isLate: boolean, nowMs: number): void {
    if (isLate) this.#lastLateMs = nowMs;
    else this.#lastOnTimeMs = nowMs;
    this.exists = this.exists
      ? nowMs - this.#lastLateMs < overMs
      : nowMs - this.#lastOnTimeMs >= standingMs;
  }
}

/** Takes the steps of each turn of the event loop, and measures what calls cost. */
class Turns {
  readonly #clock: Clock;
  readonly #queues: Queues;
  #begun = 0;
  /** Steps planned for the next turn, and those left of this one. */
  #planned = 0;
  #left = 0;
  #startedMs = 0;
  #untilMs = 0;
  /** Calls of the last turn; 0 after an idle one. */
  #taken = 0;
  /** Recent calls, and how long they took. */
  readonly #lately = { calls: 100, ms: 50 };

  constructor(clock: Clock, queues: Queues) {
    this.#clock = clock;
    this.#queues = queues;
  }

  /** Plans steps for what waits. Each begins in its own callback: its work is then done. */
  plan(): void {
    if (this.#left > 0) return;
    const steps = Math.min(this.#queues.waiting, perTurn);
    for (; this.#planned < steps; this.#planned++) this.#clock.nextTurn(this.#step);
  }

  took(): void {
    this.#taken += 1;
  }

  hasTime(): boolean {
    return this.#clock.now() < this.#untilMs;
  }

  /** How long so many calls take. */
  costMs(calls: number): number {
    return (calls * this.#lately.ms) / this.#lately.calls;
  }

  readonly #step = (): void => {
    const isFirst = this.#left === 0;
    if (isFirst) this.#start();
    this.#left -= 1;
    if (isFirst || this.hasTime()) {
      this.#begun += 1;
      this.#queues.beginNext(this.#begun);
    }
    if (this.#left > 0) return;
    this.plan();
    // No turn follows at once: the idle time until the next one is no cost of these calls.
    if (this.#planned === 0) this.#taken = 0;
  };

  #start(): void {
    const nowMs = this.#clock.now();
    if (this.#taken > 0) {
      const kept = memory ** this.#taken;
      this.#lately.calls = this.#lately.calls * kept + this.#taken;
      this.#lately.ms = this.#lately.ms * kept + (nowMs - this.#startedMs);
    }
    this.#taken = 0;
    this.#left = this.#planned;
    this.#planned = 0;
    this.#startedMs = nowMs;
    this.#untilMs = nowMs + turnMs;
  }
}

type Admitted = "none" | "money" | "all";

interface Waiting {
  readonly arrival: Arrival;
  readonly atMs: number;
}

/** A queue of waiting calls or watches, in which connections take turns. */
class Line {
  readonly #queues = new Map<object, Waiting[]>();
  size = 0;

  /** Number of connections in the queue. */
  get owners(): number {
    return this.#queues.size;
  }

  /** Number of one connection's entries. */
  of(owner: object): number {
    return this.#queues.get(owner)?.length ?? 0;
  }

  push(waiting: Waiting): void {
    this.size += 1;
    const queue = this.#queues.get(waiting.arrival.owner);
    if (queue) queue.push(waiting);
    else this.#queues.set(waiting.arrival.owner, [waiting]);
  }

  shift(): Waiting | undefined {
    const next = this.#queues.entries().next().value;
    if (!next) return undefined;
    const [owner, queue] = next;
    this.size -= 1;
    const waiting = queue.shift();
    // The owner goes to the end of the queue.
    this.#queues.delete(owner);
    if (queue.length > 0) this.#queues.set(owner, queue);
    return waiting;
  }
}

/** A slot that counts against no limit. */
export const freeSlot: Slot = { moneyOnly: false, leave() {}, suspend() {}, resume() {} };

const processClock: Clock = {
  now: () => performance.now(),
  nextTurn: (callback) => void setImmediate(callback),
};
