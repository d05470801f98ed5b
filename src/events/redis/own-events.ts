import { UnderWayByName } from "../../collections/under-way.ts";
import type { Event } from "../../gen/payments/v1/event_pb.ts";
import type { Cursor } from "../log.ts";

/** An event as this process stored it. */
export interface OwnEvent {
  readonly event: Event;
  readonly bytes: Buffer;
  /** What its state followed from, as append-event.lua told. */
  readonly facts: string;
}

/**
 * The newest events that this process itself stored in an account's log: who reads them here, live as a
 * rule, is given them as they are, not decoded and decrypted again.
 */
export class OwnEvents {
  /** By their cursors, the oldest first. */
  readonly #events = new UnderWayByName<OwnEvent>();

  add(own: OwnEvent): void {
    this.#events.set(own.event.cursor, own);
    if (this.#events.size <= maxEvents) return;
    const { oldest } = this.#events;
    if (oldest !== undefined) this.#events.delete(oldest);
  }

  /**
   * The event that is stored at a place, if it is one of these: another one may have taken the place of
   * one that was lost with a server that failed.
   */
  find(cursor: Cursor, bytes: Uint8Array, facts: string): Event | undefined {
    const own = this.#events.get(cursor);
    return own && own.facts === facts && own.bytes.equals(bytes) ? own.event : undefined;
  }
}

/** Readers that follow are hardly ever further behind than a page of the feed. */
const maxEvents = 256;
