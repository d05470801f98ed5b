import { ByAge } from "../collections/by-age.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";
import type { Cursor } from "../stores/cursor.ts";

interface RecentEvent {
  readonly event: Event;
  readonly bytes: Uint8Array;
}

/**
 * The newest events that this process itself gave an account's log to store. Its readers, mostly live
 * ones, get these objects, which spares decoding and decrypting them again. They are found by their
 * bytes, since a reader may get an event before its writer knows the cursor.
 */
export class RecentEvents {
  /** By a number made of their bytes, oldest first. */
  readonly #events = new ByAge<RecentEvent, number>();

  add(event: Event, bytes: Uint8Array): void {
    this.#events.set(hashOf(bytes), { event, bytes });
    this.#events.fromOldest(
      (oldest) => this.#events.size > maxEvents && this.#events.delete(oldest),
    );
  }

  /** The event that has these bytes, with its cursor, if it is one of these. */
  find(cursor: Cursor, bytes: Uint8Array): Event | undefined {
    const own = this.#events.get(hashOf(bytes));
    if (!own || (own.bytes !== bytes && Buffer.compare(own.bytes, bytes) !== 0)) return undefined;
    const { event } = own;
    event.cursor ||= cursor;
    return event.cursor === cursor ? event : undefined;
  }
}

/** Live readers are hardly ever further behind than a page of the feed. */
const maxEvents = 512;

/** FNV-1a of the first bytes, which have the seal's nonce or the external id. */
function hashOf(bytes: Uint8Array): number {
  let hash = 0x811c9dc5 ^ bytes.length;
  const end = Math.min(bytes.length, 96);
  for (let at = 0; at < end; at++) hash = Math.imul(hash ^ (bytes[at] as number), 0x01000193);
  return hash;
}
