import { ByAge } from "../collections/by-age.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";
import type { Cursor } from "../stores/cursor.ts";

/** An event as this process stored it. */
export interface RecentEvent {
  readonly event: Event;
  readonly bytes: Uint8Array;
}

/**
 * The newest events that this process itself stored in an account's log. Its readers, mostly live
 * ones, get these objects, which spares decoding and decrypting them again.
 */
export class RecentEvents {
  /** By cursor, oldest first. */
  readonly #events = new ByAge<RecentEvent>();

  add(recent: RecentEvent): void {
    this.#events.set(recent.event.cursor, recent);
    this.#events.fromOldest(
      (oldest) => this.#events.size > maxEvents && this.#events.delete(oldest),
    );
  }

  /**
   * The event with this cursor, if it is one of these and equals what is stored: after a failover
   * another event may have the cursor of one that was lost, and two events of one millisecond may have
   * equal bytes.
   */
  find(cursor: Cursor, bytes: Uint8Array): Event | undefined {
    const own = this.#events.get(cursor);
    if (!own) return undefined;
    return own.bytes === bytes || Buffer.compare(own.bytes, bytes) === 0 ? own.event : undefined;
  }
}

/** Live readers are hardly ever further behind than a page of the feed. */
const maxEvents = 256;
