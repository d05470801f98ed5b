import type { Cursor } from "../cursor.ts";
import { cursorOf as cursorAt, decodeCursor, placeOf } from "../cursor.ts";

/** The cursor of an event by its id in the stream: `<ms>-<seq>`. */
export function cursorOf(id: string, epoch: string): Cursor {
  const [ms, seq] = id.split("-");
  return cursorAt(placeOf({ ms: Number(ms), seq: Number(seq) }), epoch);
}

/** The id in the stream of the event that a cursor names. */
export function idOf(cursor: Cursor): string {
  const { ms, seq } = decodeCursor(cursor);
  return `${ms}-${seq}`;
}
