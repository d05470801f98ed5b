import { randomUUID } from "node:crypto";
import { GatewayError, invalidFields } from "../errors.ts";

/** Position of an event in an account's log: the text of `Event.cursor`. */
export type Cursor = string;

/** What can be read of an account's log at one instant. */
export interface Bounds {
  /** Which incarnation of the account's log this is. */
  readonly epoch: string;
  /** All events after it are kept: the last deleted event, or the beginning of the log. */
  readonly floor: Cursor;
  /** The last event ever appended, or the beginning of the log. */
  readonly tail: Cursor;
}

/** The place before every event. */
export const firstPlace = "0".repeat(18);

/** Highest `seq` that a cursor can hold. */
export const maxSeq = 0xff_ffff;

/**
 * The cursor at a place: `<ms, 12 hex digits><seq, 6 hex digits>-<epoch>`. Within one epoch, cursors
 * compared as text are in the order of their positions.
 */
export function cursorOf(place: string, epoch: string): Cursor {
  return `${place}-${epoch}`;
}

/** The place of a cursor: the cursor without its epoch. */
export function placeIn(cursor: Cursor): string {
  return cursor.slice(0, firstPlace.length);
}

/** The place of the event `seq` of a millisecond since the epoch. */
export function placeOf(ms: number, seq = 0): string {
  return ms.toString(16).padStart(12, "0") + seq.toString(16).padStart(6, "0");
}

/** The millisecond that a place names, on the clock that also times calls. */
export function msOf(place: string): number {
  return Number.parseInt(place.slice(0, 12), 16);
}

/** The millisecond and the count in it that a place names. */
export function positionOf(place: string): [ms: number, seq: number] {
  return [msOf(place), Number.parseInt(place.slice(12), 16)];
}

/** The place after a given one. It grows even if the clock stands still or is set back. */
export function nextPlace(place: string, nowMs: number): string {
  const [ms, seq] = positionOf(place);
  if (nowMs > ms) return placeOf(nowMs);
  return seq < maxSeq ? placeOf(ms, seq + 1) : placeOf(ms + 1);
}

/** The first place that is kept, if events are kept for so long. */
export function oldestPlace(nowMs: number, retentionMs: number): string {
  return placeOf(Math.max(nowMs - retentionMs, 0));
}

/** What a cursor looks like: its place and its epoch. */
export const cursorForm = /^([0-9a-f]{18})-([0-9a-f]{8})$/;

/** @throws GatewayError INVALID_ARGUMENT for text that is not a cursor */
export function decodeCursor(text: string): { readonly place: string; readonly epoch: string } {
  const [, place, epoch] = cursorForm.exec(text) ?? [];
  if (place === undefined || epoch === undefined) {
    throw invalidFields([{ path: "after_cursor", message: "is not a cursor" }]);
  }
  return { place, epoch };
}

/**
 * Returns a random name for one incarnation of an account's log. It reveals a cursor of another
 * account, or of a log that was lost.
 */
export function newEpoch(): string {
  return randomUUID().slice(0, 8);
}

/**
 * Checks that all events after a cursor can be read.
 * @throws GatewayError OUT_OF_RANGE for a cursor of another log, older than what is kept, or ahead
 * of the log; INVALID_ARGUMENT for text that is not a cursor
 */
export function assertReadable(after: Cursor, { epoch, floor, tail }: Bounds): void {
  assertOf(after, epoch);
  if (after < floor) throw cursorExpired("events behind it are no longer kept");
  if (after > tail) throw cursorExpired("it is ahead of the log");
}

/**
 * Checks that a cursor belongs to this log.
 * @throws GatewayError OUT_OF_RANGE for a cursor of another log; INVALID_ARGUMENT for text that is
 * not a cursor
 */
export function assertOf(cursor: Cursor, epoch: string): void {
  if (decodeCursor(cursor).epoch !== epoch) throw cursorExpired("it belongs to another log");
}

/** The error for a client that has to start again without its cursor. */
export function cursorExpired(why: string): GatewayError {
  return new GatewayError("OUT_OF_RANGE", `the cursor cannot be resumed from: ${why}`, {
    reason: "CURSOR_EXPIRED",
  });
}
