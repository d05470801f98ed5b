import { type Member, UnderWay } from "../../collections/under-way.ts";

/**
 * Heartbeats of all streams of a listener by one timer, which looks at a few of them at a time. With a
 * timer each, Node runs all at once that came due while it was busy, and at once again from then on;
 * and each event had to start them anew.
 */
export class Heartbeats {
  readonly #slots: readonly UnderWay<Heartbeat>[];
  readonly #tickMs: number;
  readonly #now: () => number;
  #size = 0;
  /** The slot that is looked at next, and when that is due. */
  #at = 0;
  #dueMs = 0;
  /** The slot of who comes next. */
  #next = 0;
  #timer: NodeJS.Timeout | undefined;
  /** It is late: the next slot is looked at in the next turn of the event loop. */
  #late: NodeJS.Immediate | undefined;

  /** @param intervalMs the longest silence. It is broken after half of that at the earliest. */
  constructor(intervalMs: number, now = () => performance.now()) {
    this.#now = now;
    const roundMs = intervalMs / roundsInSilence;
    const count = Math.max(1, Math.floor(roundMs / leastTickMs));
    this.#slots = Array.from({ length: count }, () => new UnderWay<Heartbeat>());
    this.#tickMs = roundMs / count;
  }

  /** Streams that have heartbeats. */
  get size(): number {
    return this.#size;
  }

  /** Calls back whenever a stream has been silent for so long, until it is stopped. */
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
   * Looks at one slot. What it was kept from it makes up for once, a slot in each turn of the event
   * loop: all at once, on a busy machine, would keep it from as much again, and calls with it.
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

/** A stream is looked at so often within the longest silence, and beats when it has said nothing. */
const roundsInSilence = 2;
const leastTickMs = 50;

/** Of one stream. */
export class Heartbeat {
  readonly #beat: () => void;
  readonly #member: Member<Heartbeat>;
  readonly #onStop: () => void;
  /** It has said something since it was last looked at. */
  #spoke = true;

  constructor(beat: () => void, slot: UnderWay<Heartbeat>, onStop: () => void) {
    this.#beat = beat;
    this.#member = slot.add(this);
    this.#onStop = onStop;
  }

  /** The stream has said something. */
  spoke(): void {
    this.#spoke = true;
  }

  /** To be called twice within the longest silence. */
  look(): void {
    if (!this.#spoke) this.#beat();
    // A beat breaks the silence too, so that the next look is passed over.
    this.#spoke = !this.#spoke;
  }

  /** Once is enough. */
  stop(): void {
    if (this.#member.hasLeft) return;
    this.#member.leave();
    this.#onStop();
  }
}
