/**
 * How the limits treat a call. Calls that move `money` are refused last. An `unknown` call is
 * admitted as if it moved money, before its body shows whether it does; `Slot.moneyOnly` says
 * whether it must. A `watch` opens a stream; calls go before it. An `exempt` call waits for its
 * turn, but it is never refused and not counted.
 */
export type CallKind = RefusableKind | "exempt";
export type RefusableKind = "other" | "money" | "unknown" | "watch";

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
  readonly refuse: (kind: RefusableKind) => void;
}

/** Starts calls in turn, and refuses those that are more than the process can serve. */
export type Admission = Pick<Queues, "enter" | "inFlight">;

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
 * @param options.maxCalls most calls in flight at once; with `undefined`, no call is refused
 */
export function createAdmission({ maxCalls }: { maxCalls: number | undefined }): Admission {
  return new Queues(maxCalls);
}

class Queues {
  readonly #calls = new Line();
  readonly #watches = new Line();
  readonly #maxCalls: number | undefined;
  readonly #standing = new StandingQueue();
  #inFlight = 0;
  #begun = 0;
  /** Steps planned for the next turn, and those left of this one. */
  #planned = 0;
  #left = 0;
  /** When the last turn began. */
  #startedMs = 0;
  /** Calls of the last turn; 0 after an idle one. */
  #taken = 0;
  /** Recent calls, and how long they took. */
  readonly #lately = { calls: 100, ms: 50 };

  constructor(maxCalls: number | undefined) {
    this.#maxCalls = maxCalls;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  enter(arrival: Arrival): void {
    const { kind } = arrival;
    const isWatch = kind === "watch";
    const line = isWatch ? this.#watches : this.#calls;
    const ahead = line.of(arrival.owner);
    // Connections take turns: the call and each one ahead of it wait for a round over all of them.
    const before = Math.min(line.size, (ahead + 1) * line.owners);
    const waitMs = (before * this.#lately.ms) / this.#lately.calls;
    if (kind !== "exempt" && refuses(this.#admitted(arrival, waitMs, ahead), kind)) {
      arrival.refuse(kind);
      return;
    }
    const atMs = performance.now();
    if (!isWatch && line.size === 0) this.#standing.observe(false, atMs);
    line.push({ arrival, atMs });
    this.#plan();
  }

  /**
   * Which calls are admitted in the place of one that has waited, or is expected to wait, for
   * `waitMs`. `ahead` counts the other waiting calls of its connection.
   */
  #admitted({ kind, timeoutMs = Infinity }: Arrival, waitMs: number, ahead: number): Admitted {
    const maxCalls = this.#maxCalls;
    if (maxCalls === undefined) return "all";
    const isWatch = kind === "watch";
    const maxMs = Math.max(timeoutMs * shareOfWaiting, maxQueueMs.other);
    const isTooLate = waitMs > maxMs || waitMs > maxQueueMs[isWatch ? "watch" : "burst"];
    if (this.#inFlight >= maxCalls || isTooLate) return "none";
    // However late the calls are, each turn must have some to start: the last few are not shed.
    const sheds = !isWatch && this.#standing.exists && this.#calls.size >= perTurn;
    const countedMs = sheds ? waitMs / (ahead > 0 ? 1 : lonelyFactor) : 0;
    if (countedMs > maxQueueMs.money) return "none";
    const isFull = this.#inFlight >= maxCalls * shareOfOthers;
    return isFull || countedMs > maxQueueMs.other ? "money" : "all";
  }

  /** Plans steps for what waits. Each begins in its own callback: its work is then done. */
  #plan(): void {
    if (this.#left > 0) return;
    const steps = Math.min(this.#calls.size + this.#watches.size, perTurn);
    for (; this.#planned < steps; this.#planned++) setImmediate(this.#step);
  }

  readonly #step = (): void => {
    const isFirst = this.#left === 0;
    if (isFirst) this.#startTurn();
    this.#left -= 1;
    if (isFirst || this.#hasTime()) this.#beginNext();
    if (this.#left > 0) return;
    this.#plan();
    // No turn follows at once: the idle time until the next one is no cost of these calls.
    if (this.#planned === 0) this.#taken = 0;
  };

  /** Begins a turn, and measures what the calls of the last one have cost. */
  #startTurn(): void {
    const nowMs = performance.now();
    if (this.#taken > 0) {
      const kept = memory ** this.#taken;
      this.#lately.calls = this.#lately.calls * kept + this.#taken;
      this.#lately.ms = this.#lately.ms * kept + (nowMs - this.#startedMs);
    }
    this.#taken = 0;
    this.#left = this.#planned;
    this.#planned = 0;
    this.#startedMs = nowMs;
  }

  #hasTime(): boolean {
    return performance.now() < this.#startedMs + turnMs;
  }

  /** Begins a call or a watch, and refuses those before it that have waited too long. */
  #beginNext(): void {
    this.#begun += 1;
    const isWatchesTurn = this.#begun % watchEvery === 0;
    do {
      const isWatch = this.#watches.size > 0 && (isWatchesTurn || this.#calls.size === 0);
      if (this.#beginFirst(isWatch ? this.#watches : this.#calls)) return;
    } while (this.#hasTime());
  }

  /** @returns false when the first one was not begun: it was refused, or is gone */
  #beginFirst(line: Line): boolean {
    const first = line.shift();
    if (!first) return true;
    const { arrival, atMs } = first;
    const behind = line.of(arrival.owner);
    const nowMs = performance.now();
    let waitedMs = nowMs - atMs;
    this.#taken += 1;
    if (line === this.#calls) {
      const isLate = waitedMs > maxQueueMs.other;
      // A connection's only call being on time does not show that connections with many calls are.
      if (isLate || behind > 0 || line.size === 0) this.#standing.observe(isLate, nowMs);
      waitedMs /= lateFactor;
    }
    const which = this.#admitted(arrival, waitedMs, behind);
    if (arrival.isGone()) return false;
    const { kind } = arrival;
    if (kind !== "exempt" && refuses(which, kind)) {
      arrival.refuse(kind);
      return false;
    }
    arrival.start(kind === "exempt" ? freeSlot : this.#slot(which === "money"));
    return true;
  }

  #slot(moneyOnly: boolean): Slot {
    let state: "new" | "counted" | "suspended" | "over" = "new";
    const become = (next: typeof state) => {
      if (state === "over") return;
      this.#inFlight += Number(next === "counted") - Number(state === "counted");
      state = next;
    };
    become("counted");
    return {
      moneyOnly,
      leave: () => become("over"),
      suspend: () => become("suspended"),
      resume: () => become("counted"),
    };
  }
}

function refuses(which: Admitted, kind: RefusableKind): boolean {
  if (which === "all") return false;
  return which === "none" || kind === "other" || kind === "watch";
}

/** Tells a standing queue, in which calls have been late for a while, from a burst. */
class StandingQueue {
  #lastLateMs = Number.NEGATIVE_INFINITY;
  #lastOnTimeMs = performance.now();
  exists = false;

  observe(isLate: boolean, nowMs: number): void {
    if (isLate) this.#lastLateMs = nowMs;
    else this.#lastOnTimeMs = nowMs;
    this.exists = this.exists
      ? nowMs - this.#lastLateMs < overMs
      : nowMs - this.#lastOnTimeMs >= standingMs;
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
