import { endOfString } from "../net/bounded-json.ts";

/**
 * The plain decimal text of a JSON number: its own text, digit for digit, with an exponent written
 * out (`1.5e-3` is `0.0015`). Undefined for an exponent beyond ±40, which no amount or id has.
 */
export function plainDecimal(source: string): string | undefined {
  const parts = exponentForm.exec(source);
  if (parts === null) return source;
  const [, sign = "", whole = "", fraction = "", power = ""] = parts;
  const exponent = Number(power);
  if (Math.abs(exponent) > maxExponent) return undefined;

  const digits = whole + fraction;
  const point = whole.length + exponent;
  const before = point > 0 ? digits.slice(0, point).padEnd(point, "0") : "0";
  const behind = point > 0 ? digits.slice(point) : "0".repeat(-point) + digits;
  const integer = before.replace(/^0+(?=[0-9])/, "");
  return behind === "" ? sign + integer : `${sign}${integer}.${behind}`;
}

const exponentForm = /^(-?)([0-9]+)(?:\.([0-9]+))?[eE]([+-]?[0-9]+)$/;
const maxExponent = 40;

/**
 * A decimal text as a JSON number of the same value: only leading zeros are removed, since JSON
 * does not allow them (`007.10` becomes `7.10`). Undefined for any other text, which must not be
 * written into a body unquoted.
 */
export function jsonNumber(text: string): string | undefined {
  if (jsonDecimal.test(text)) return text;
  const parts = zeroLedDecimal.exec(text);
  return parts === null ? undefined : `${parts[1]}${parts[2]}`;
}

const jsonDecimal = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$/;
const zeroLedDecimal = /^(-?)0*((?:0|[1-9][0-9]*)(?:\.[0-9]+)?)$/;

/**
 * The source text of the number that a member holds, found without a second `JSON.parse`. Undefined
 * unless `name` occurs exactly once in the JSON text, as a member's name or a string. The text must
 * be valid JSON, and `name` only letters, digits and underscores.
 */
export function soleNumber(text: string, name: string): string | undefined {
  const quoted = `"${name}"`;
  const at = text.indexOf(quoted);
  if (at === -1 || text.indexOf(quoted, at + quoted.length) !== -1) return undefined;
  // A member's name may contain escapes; only `\u` escapes stand for letters, digits and `_`.
  if (text.includes("\\u")) return undefined;
  numberBehind.lastIndex = at + quoted.length;
  return numberBehind.exec(text)?.[1];
}

const numberBehind = /[ \t\r\n]*:[ \t\r\n]*(-?\d[\d.eE+-]*)/y;

/**
 * Reads a JSON text with each number as a string of its own text, so that it keeps every digit. The
 * text must be valid JSON. A reviver of `JSON.parse` takes three times as long.
 */
export function parseWithNumberTexts(text: string): unknown {
  let quoted = "";
  let copiedTo = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text[at] as string;
    if (character === '"') {
      at = endOfString(text, at);
    } else if (character === "-" || (character >= "0" && character <= "9")) {
      const from = at;
      while (numberCharacters.includes(text[at + 1] ?? " ")) at++;
      quoted += `${text.slice(copiedTo, from)}"${text.slice(from, at + 1)}"`;
      copiedTo = at + 1;
    }
  }
  return JSON.parse(quoted + text.slice(copiedTo));
}

const numberCharacters = "0123456789.eE+-";
