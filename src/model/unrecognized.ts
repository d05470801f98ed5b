import { create } from "@bufbuild/protobuf";
import {
  type UnrecognizedValue,
  UnrecognizedValueSchema,
} from "../gen/payments/v1/unrecognized_value_pb.ts";
import { maskCardNumbers } from "../secrets/mask-card-numbers.ts";

/** Longest text of an unrecognized value, in UTF-16 code units. */
const maxUnrecognizedChars = 64;

/**
 * The text of a value outside an enum, as callers, the log and logs may have it: card numbers are
 * masked, and it is cut at `maxUnrecognizedChars`.
 */
export function unrecognizedText(text: string): string {
  // Mask before the cut, which may leave too few digits of a card number to tell.
  const masked = maskCardNumbers(text.slice(0, 4 * maxUnrecognizedChars).toWellFormed());
  return masked.slice(0, maxUnrecognizedChars).toWellFormed();
}

/** Whether a text of `unrecognizedText` is all that the service said: neither masked nor cut. */
export function isWhole(value: string): boolean {
  return value.length < maxUnrecognizedChars && !value.includes("*") && !value.includes("\ufffd");
}

export function unrecognizedValue(field: string, value: string): UnrecognizedValue {
  return create(UnrecognizedValueSchema, { field, value });
}

/** What the service said in a field, in lower case; undefined if that was understood. */
export function unrecognizedIn(
  message: { readonly unrecognized: readonly UnrecognizedValue[] },
  field: string,
): string | undefined {
  return message.unrecognized.find((one) => one.field === field)?.value.toLowerCase();
}

/** Paths of unread fields, by message. */
const unread = new WeakMap<object, readonly string[]>();

/** Records a message's unread fields by their JSON paths, such as `details.status`. */
export function noteUnreadFields(message: object, paths: readonly string[]): void {
  unread.set(message, paths);
}

/**
 * JSON paths of a message's unread fields: the payments service sent them, but the codec could not
 * read their values exactly as sent. A value outside the contract must not pass for an absent one.
 * Empty for a message that was not read from JSON, and for a copy.
 */
export function unreadFieldsOf(message: object): readonly string[] {
  return unread.get(message) ?? [];
}
