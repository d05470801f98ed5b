import { UnderWayByName } from "../../collections/under-way.ts";
import type { Event } from "../../gen/payments/v1/event_pb.ts";
import type { Cursor } from "../log.ts";

/** An event as this process stored it. */
export interface OwnEvent {
  readonly event: Event;
  readonly bytes: Buffer;
  /** The facts after the event, as append-event.lua returned them. */
  readonly facts: string;
}

/**
 * The newest events that this process itself stored in an account's log. Its readers, mostly live
 * ones, get these objects, which spares decoding and decrypting them again.
 */
export class OwnEvents {
  /** By cursor, oldest first. */
  readonly #events = new UnderWayByName<OwnEvent>();

  add(own: OwnEvent): void {
    this.#events.set(own.event.cursor, own);
    if (this.#events.size <= maxEvents) return;
    const { oldest } = this.#events;
    if (oldest !== undefined) this.#events.delete(oldest);
  }

  /**
   * The event with this cursor, if it is one of these and equals what is stored: after a failover
   * another event may have the cursor of one that was lost.
   */
  find(cursor: Cursor, bytes: Uint8Array, facts: string): Event | undefined {
    const own = this.#events.get(cursor);
    return own && own.facts === facts && own.bytes.equals(bytes) ? own.event : undefined;
  }
}

/** Live readers are hardly ever further behind than a page of the feed. */
const maxEvents = 256;
