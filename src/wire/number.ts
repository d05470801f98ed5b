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
 * The same JSON text with each number as a string of its own text, so that a plain `JSON.parse`
 * keeps every digit: several times faster than a reviver. The text must be valid JSON.
 */
export function quoteNumbers(text: string): string {
  let quoted = "";
  let copied = 0;
  let at = 0;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      at = endOfString(text, at);
    } else if (code === minus || isDigit(code)) {
      const start = at;
      while (isPartOfNumber(text.charCodeAt(at))) at++;
      quoted += `${text.slice(copied, start)}"${text.slice(start, at)}"`;
      copied = at;
    } else {
      at++;
    }
  }
  return quoted + text.slice(copied);
}

const quote = 0x22;
const backslash = 0x5c;
const plus = 0x2b;
const minus = 0x2d;
const point = 0x2e;

/** Index behind the closing quote: the first one with an even number of backslashes before it. */
function endOfString(text: string, opening: number): number {
  let end = text.indexOf('"', opening + 1);
  for (;;) {
    let slash = end - 1;
    while (text.charCodeAt(slash) === backslash) slash--;
    if ((end - slash) % 2 === 1) return end + 1;
    end = text.indexOf('"', end + 1);
  }
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

function isPartOfNumber(code: number): boolean {
  const isE = (code | 0x20) === 0x65;
  return isDigit(code) || code === point || code === minus || code === plus || isE;
}
