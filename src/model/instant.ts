import type { Timestamp } from "@bufbuild/protobuf/wkt";

/** 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z in seconds: the range of Timestamp. */
export const firstSecond = -62_135_596_800;
export const lastSecond = 253_402_300_799;

/**
 * Writes an instant as ISO 8601 in UTC, with 0, 3, 6 or 9 digits of a fraction, as proto JSON does.
 * Undefined outside the years 1 to 9999.
 */
export function writeInstant({ seconds, nanos }: Timestamp): string | undefined {
  const whole = Number(seconds);
  if (!(whole >= firstSecond && whole <= lastSecond)) return undefined;
  if (!(Number.isInteger(nanos) && nanos >= 0 && nanos < 1e9)) return undefined;
  const day = Math.floor(whole / 86_400);
  const ofDay = whole - day * 86_400;
  const hours = twoDigits(Math.floor(ofDay / 3_600));
  const minutes = twoDigits(Math.floor(ofDay / 60) % 60);
  return `${dayText(day)}T${hours}:${minutes}:${twoDigits(ofDay % 60)}${fractionText(nanos)}Z`;
}

/**
 * Whether the day and the time of an RFC 3339 text that is otherwise valid exist: JavaScript, and so
 * protobuf-es, takes 31 February as 3 March, and 24:00 as 00:00.
 */
export function isOfCalendar(instant: string): boolean {
  const local = instant.slice(0, "2026-01-31T12:00:00".length);
  return new Date(`${local}Z`).toISOString().startsWith(local);
}

/** Cached texts of days by day since 1970: timestamps rarely span more than a few days. */
const textsOfDays = new Map<number, string>();
const maxDays = 1_000;

function dayText(day: number): string {
  let text = textsOfDays.get(day);
  if (text === undefined) {
    text = new Date(day * 86_400_000).toISOString().slice(0, "0000-00-00".length);
    if (textsOfDays.size >= maxDays) textsOfDays.clear();
    textsOfDays.set(day, text);
  }
  return text;
}

function fractionText(nanos: number): string {
  if (nanos === 0) return "";
  const digits = String(nanos).padStart(9, "0");
  if (digits.endsWith("000000")) return `.${digits.slice(0, 3)}`;
  return digits.endsWith("000") ? `.${digits.slice(0, 6)}` : `.${digits}`;
}

function twoDigits(number: number): string {
  return number < 10 ? `0${number}` : String(number);
}
