import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { firstSecond, lastSecond } from "../model/instant.ts";

/**
 * Reads an ISO 8601 date-time with `Z`, with an offset, or with neither (read as UTC, since the
 * spec does not say). A space may stand for the `T`; a date alone means its midnight. Fractions
 * keep nine digits. Undefined for any other text, for a date that does not exist, and for years
 * outside 1 to 9999.
 */
export function readInstant(text: string): Timestamp | undefined {
  const parts = iso8601.exec(text);
  if (parts === null) return undefined;
  const year = Number(parts[1]);
  const month = Number(parts[2]);
  const day = Number(parts[3]);
  const hour = Number(parts[4] ?? 0);
  const minute = Number(parts[5] ?? 0);
  const second = Number(parts[6] ?? 0);
  const offsetHour = Number(parts[9] ?? 0);
  const offsetMinute = Number(parts[10] ?? 0);
  const midnight = midnightMs(year, month, day);
  if (month < 1 || month > 12 || day < 1) return undefined;
  if (midnight >= midnightMs(year, month + 1, 1)) return undefined;
  // A leap second (:60) becomes the first second of the next minute: Timestamp has none.
  if (hour > 23 || minute > 59 || second > 60) return undefined;
  if (offsetHour > 23 || offsetMinute > 59) return undefined;

  const offset = (offsetHour * 60 + offsetMinute) * (parts[8] === "-" ? -60 : 60);
  const time = hour * 3600 + minute * 60 + second;
  const seconds = midnight / 1_000 + time - offset;
  if (seconds < firstSecond || seconds > lastSecond) return undefined;
  const nanos = parts[7] === undefined ? 0 : Number(parts[7].padEnd(9, "0"));
  return { $typeName: "google.protobuf.Timestamp", seconds: BigInt(seconds), nanos };
}

const iso8601 =
  /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9})\d*)?)?(?: ?(?:[Zz]|([+-])(\d{2})(?::?(\d{2}))?))?)?$/;

/** Milliseconds since the epoch. Counted 400 years later: `Date.UTC` reads the year 99 as 1999. */
function midnightMs(year: number, month: number, day: number): number {
  return Date.UTC(year + 400, month - 1, day) - daysIn400Years * 86_400_000;
}

/** The same for any 400 years of the Gregorian calendar. */
const daysIn400Years = 146_097;
