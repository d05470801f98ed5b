import { randomUUID } from "node:crypto";
import { GatewayError } from "../errors.ts";
import type { Cursor } from "./log.ts";

/** A place in the log: milliseconds since the epoch, and a count within the millisecond. */
export interface Position {
  readonly ms: number;
  readonly seq: number;
}

/** What can be read of an account's log at one instant. */
export interface Bounds {
  /** Which incarnation of the account's log this is. */
  readonly epoch: string;
  /** Everything behind it is kept: the last forgotten event, or the very beginning. */
  readonly floor: Cursor;
  /** The last event ever appended, or the very beginning. */
  readonly tail: Cursor;
}

/** Before every event. */
export const beginning: Position = { ms: 0, seq: 0 };

/** Most events of one millisecond that a cursor can tell apart. */
export const maxSeq = 0xff_ffff;

/**
 * Writes a place as a cursor: `<ms, 12 hex digits><seq, 6 hex digits>-<epoch>`. Of one epoch, the
 * order of the texts is the order of the places.
 */
export function encodeCursor(position: Position, epoch: string): Cursor {
  return `${placeOf(position)}-${epoch}`;
}

/** A cursor without its epoch. */
export function placeOf({ ms, seq }: Position): string {
  if (ms !== lastMs) {
    lastMs = ms;
    lastMsText = ms.toString(16).padStart(12, "0");
  }
  return lastMsText + seq.toString(16).padStart(6, "0");
}

/** Places that are written one after the other are of one millisecond, mostly. */
let lastMs = 0;
let lastMsText = "000000000000";

/** The next place behind one: cursors grow even while the clock stands or is set back. */
export function nextPosition({ ms, seq }: Position, nowMs: number): Position {
  if (nowMs > ms) return { ms: nowMs, seq: 0 };
  return seq < maxSeq ? { ms, seq: seq + 1 } : { ms: ms + 1, seq: 0 };
}

/** The same for a place as it is written. */
export function nextPlace(place: string, nowMs: number): string {
  const ms = Number.parseInt(place.slice(0, 12), 16);
  return placeOf(nextPosition({ ms, seq: Number.parseInt(place.slice(12), 16) }, nowMs));
}

/** @throws GatewayError INVALID_ARGUMENT for a text that never was a cursor. */
export function decodeCursor(text: string): Position & { readonly epoch: string } {
  const match = /^([0-9a-f]{12})([0-9a-f]{6})-([0-9a-f]{8})$/.exec(text);
  if (!match) {
    const message = "is not a cursor";
    throw new GatewayError("INVALID_ARGUMENT", `after_cursor: ${message}`, {
      reason: "INVALID_FIELDS",
      fields: [{ path: "after_cursor", message }],
    });
  }
  const [, ms = "", seq = "", epoch = ""] = match;
  return { ms: Number.parseInt(ms, 16), seq: Number.parseInt(seq, 16), epoch };
}

/**
 * Names an incarnation of an account's log: a cursor of another account, or of a log that was lost,
 * is told by it.
 */
export function newEpoch(): string {
  return randomUUID().slice(0, 8);
}

/**
 * Checks that all events behind a cursor can be had.
 * @throws GatewayError OUT_OF_RANGE for one of another log, older than what is kept, or ahead of
 * the log; INVALID_ARGUMENT for a text that never was a cursor.
 */
export function assertReadable(after: Cursor, { epoch, floor, tail }: Bounds): void {
  assertOf(after, epoch);
  if (after < floor) throw cursorExpired("events behind it are no longer kept");
  if (after > tail) throw cursorExpired("it is ahead of the log");
}

/**
 * Checks that a cursor is of this log.
 * @throws GatewayError OUT_OF_RANGE for one of another log; INVALID_ARGUMENT for a text that never was
 * a cursor
 */
export function assertOf(cursor: Cursor, epoch: string): void {
  if (decodeCursor(cursor).epoch !== epoch) throw cursorExpired("it belongs to another log");
}

/** What a client is told that has to start again without its cursor. */
export function cursorExpired(why: string): GatewayError {
  return new GatewayError("OUT_OF_RANGE", `the cursor cannot be resumed from: ${why}`, {
    reason: "CURSOR_EXPIRED",
  });
}
