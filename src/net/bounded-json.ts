import { intakeLimits } from "./intake-limits.ts";

/** A limit that a message exceeds, in words that follow "the request". */
export type Excess = string;

/**
 * Whether a JSON text would hold more than the limits once it is parsed: counts values, depth and
 * the digits of numbers without making any. Its own cost is linear, and none for a text so short
 * that it cannot hold more values. The text need not be valid JSON.
 */
export function excessOfJson(
  text: string,
  values: number = intakeLimits.values,
): Excess | undefined {
  // A value and its comma take two characters.
  if (text.length <= Math.min(2 * values, shortChars)) return undefined;
  const { depth: maxDepth, numberChars } = intakeLimits;
  let count = 1;
  let depth = 0;
  const { length } = text;
  for (let at = 0; at < length; at++) {
    switch (text.charCodeAt(at)) {
      case quote:
        at = endOfString(text, at);
        break;
      case comma:
        count += 1;
        if (count > values) return tooMany(values);
        break;
      case openObject:
      case openList:
        count += 1;
        depth += 1;
        if (depth > maxDepth) return `is nested more than ${maxDepth} levels deep`;
        if (count > values) return tooMany(values);
        break;
      case closeObject:
      case closeList:
        depth -= 1;
        break;
      default: {
        const start = at;
        while (isDigit(text.charCodeAt(at + 1))) at += 1;
        if (at - start > numberChars) return `holds a number of more than ${numberChars} digits`;
      }
    }
  }
  return undefined;
}

export function tooMany(values: number): Excess {
  return `holds more than ${values} values`;
}

/** A text of this length is read at once, however deep it is and whatever its numbers. */
const shortChars = 1_000;

/** Index of the closing quote, or of the last character of a text without one. */
export function endOfString(text: string, opening: number): number {
  for (let at = opening + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) return at;
    if (code === backslash) at += 1;
  }
  return text.length;
}

const quote = 0x22;
const comma = 0x2c;
const backslash = 0x5c;
const openList = 0x5b;
const closeList = 0x5d;
const openObject = 0x7b;
const closeObject = 0x7d;

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}
