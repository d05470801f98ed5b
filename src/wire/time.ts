import type { Timestamp } from "@bufbuild/protobuf/wkt";

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

/** 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z: the range of Timestamp. */
const firstSecond = -62_135_596_800;
const lastSecond = 253_402_300_799;

/**
 * Writes an instant as ISO 8601 in UTC, with 0, 3, 6 or 9 digits of a fraction.
 * Undefined outside the years 1 to 9999.
 */
export function writeInstant({ seconds, nanos }: Timestamp): string | undefined {
  const whole = Number(seconds);
  if (!(whole >= firstSecond && whole <= lastSecond)) return undefined;
  if (!(Number.isInteger(nanos) && nanos >= 0 && nanos < 1e9)) return undefined;
  const text = new Date(whole * 1000).toISOString();
  if (nanos === 0) return `${text.slice(0, 19)}Z`;
  if (nanos % 1e6 === 0) return `${text.slice(0, 20)}${String(nanos / 1e6).padStart(3, "0")}Z`;
  const fraction = String(nanos).padStart(9, "0").replace(/000$/, "");
  return `${text.slice(0, 20)}${fraction}Z`;
}

/** Milliseconds since the epoch. Counted 400 years later: `Date.UTC` reads the year 99 as 1999. */
function midnightMs(year: number, month: number, day: number): number {
  return Date.UTC(year + 400, month - 1, day) - daysIn400Years * 86_400_000;
}

/** The same for any 400 years of the Gregorian calendar. */
const daysIn400Years = 146_097;
