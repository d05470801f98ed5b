import type { Cursor } from "../cursor.ts";
import { decodeCursor, encodeCursor } from "../cursor.ts";

/** The cursor of an event by its id in the stream: `<ms>-<seq>`. */
export function cursorOf(id: string, epoch: string): Cursor {
  const [ms, seq] = id.split("-");
  return encodeCursor({ ms: Number(ms), seq: Number(seq) }, epoch);
}

/** The id in the stream of the event that a cursor names. */
export function idOf(cursor: Cursor): string {
  const { ms, seq } = decodeCursor(cursor);
  return `${ms}-${seq}`;
}

/** The id in the stream of the event at a place (a cursor without its epoch). */
export function idOfPlace(place: string): string {
  return idOf(`${place}-00000000`);
}
