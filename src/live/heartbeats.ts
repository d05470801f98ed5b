import { type Member, UnderWay } from "../collections/under-way.ts";

/**
 * Heartbeats of all streams of a listener, by one timer that checks one slot of streams at a time.
 * With a timer for each stream, Node would run all timers that came due while it was busy in one
 * turn, and again in one turn in each later interval; and each event would have to restart a timer.
 */
export class Heartbeats {
  readonly #slots: readonly UnderWay<Heartbeat>[];
  readonly #tickMs: number;
  readonly #now: () => number;
  #size = 0;
  /** The slot that is checked next, and when that is due. */
  #at = 0;
  #dueMs = 0;
  /** The slot for the next stream that is added. */
  #next = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Set while checks are overdue: the next one runs in the next turn of the event loop. */
  #late: NodeJS.Immediate | undefined;

  /** @param intervalMs longest silence of a stream; a heartbeat comes after half of it or later */
  constructor(intervalMs: number, now = () => performance.now()) {
    this.#now = now;
    const roundMs = intervalMs / roundsInSilence;
    const count = Math.max(1, Math.floor(roundMs / leastTickMs));
    this.#slots = Array.from({ length: count }, () => new UnderWay<Heartbeat>());
    this.#tickMs = roundMs / count;
  }

  /** Calls `beat` after each silence of between half and all of the interval, until `stop`. */
  add(beat: () => void): Heartbeat {
    const slot = this.#slots[this.#next] as UnderWay<Heartbeat>;
    this.#next = (this.#next + 1) % this.#slots.length;
    this.#size += 1;
    if (!this.#timer) {
      this.#dueMs = this.#now() + this.#tickMs;
      this.#timer = setInterval(() => this.#late ?? this.#tick(), this.#tickMs);
    }
    return new Heartbeat(beat, slot, () => {
      this.#size -= 1;
      if (this.#size > 0) return;
      clearInterval(this.#timer);
      clearImmediate(this.#late);
      this.#timer = undefined;
      this.#late = undefined;
    });
  }

  /**
   * Checks one slot. After a delay it makes up at most one check of each slot, one slot in each
   * turn of the event loop: all in one turn would delay a busy process, and its calls, by as much
   * again.
   */
  #tick(): void {
    this.#late = undefined;
    const now = this.#now();
    this.#dueMs = Math.max(this.#dueMs, now - (this.#slots.length - 1) * this.#tickMs);
    if (this.#dueMs > now) return;
    const slot = this.#slots[this.#at] as UnderWay<Heartbeat>;
    this.#at = (this.#at + 1) % this.#slots.length;
    this.#dueMs += this.#tickMs;
    if (this.#dueMs <= now) this.#late = setImmediate(() => this.#tick());
    for (const heartbeat of slot) heartbeat.look();
  }
}

/** Checks of each stream in an interval. A stream that sent nothing since its last check beats. */
const roundsInSilence = 2;
const leastTickMs = 50;

/** The heartbeat of one stream. */
export class Heartbeat {
  readonly #beat: () => void;
  readonly #member: Member<Heartbeat>;
  readonly #onStop: () => void;
  /** Whether the stream has sent anything since its last check. */
  #spoke = true;

  constructor(beat: () => void, slot: UnderWay<Heartbeat>, onStop: () => void) {
    this.#beat = beat;
    this.#member = slot.add(this);
    this.#onStop = onStop;
  }

  /** To be called when the stream has sent something. */
  spoke(): void {
    this.#spoke = true;
  }

  /** Checks the stream. To be called twice in each interval. */
  look(): void {
    if (!this.#spoke) this.#beat();
    // A beat breaks the silence too, so the next check does nothing.
    this.#spoke = !this.#spoke;
  }

  /** Further calls have no effect. */
  stop(): void {
    if (this.#member.hasLeft) return;
    this.#member.leave();
    this.#onStop();
  }
}
