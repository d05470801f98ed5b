import type { DescMessage } from "@bufbuild/protobuf";
import { contractFiles } from "../model/contract.ts";
import { maskCardNumbers } from "./mask-card-numbers.ts";
import { isSecret } from "./secret-fields.ts";

/** The text that replaces a secret. */
export const mask = "[redacted]";

export interface RedactOptions {
  /** Whether the member of this name is secret. Default: `isSecretName`. */
  readonly isSecret?: (name: string) => boolean;
  /** Whether the member is an identifier, which may look like a card number. Default: none is. */
  readonly isIdentifier?: (name: string) => boolean;
}

/**
 * A text as people may see it: card numbers and the values of secret members are masked. JSON is
 * indented, and its numbers keep their digits. In text that is not JSON, such as a form, XML or
 * JSON that was cut off, what follows a secret name is masked, rather too much of it than too
 * little. The strings of JSON may hold such text, and are masked alike. JSON that is nested too
 * deep is not shown.
 */
export function redact(text: string, options: RedactOptions = {}): string {
  let value: unknown;
  try {
    value = JSON.parse(text, keepDigits as Reviver);
  } catch {
    return redactText(text, { isSecret: isSecretName, ...options, prose: true });
  }
  try {
    return JSON.stringify(redactValue(value, { isSecret: isSecretName, ...options }), undefined, 2);
  } catch {
    return `[${text.length} characters that are nested too deep to be shown]`;
  }
}

interface Rules extends RedactOptions {
  readonly isSecret: (name: string) => boolean;
}

type Reviver = (key: string, value: unknown) => unknown;

/** A JSON number as its source text. */
class Digits {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

function keepDigits(_: string, value: unknown, context?: { source?: string }): unknown {
  return typeof value === "number" ? new Digits(context?.source ?? String(value)) : value;
}

const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown };

function redactValue(value: unknown, rules: Rules, name = ""): unknown {
  if (value === null || value === "") return value;
  if (rules.isSecret(name)) return mask;
  const isIdentifier = rules.isIdentifier?.(name) ?? false;
  if (value instanceof Digits) {
    const shown = isIdentifier ? value.text : maskCardNumbers(value.text);
    return shown === value.text ? rawJSON(value.text) : shown;
  }
  if (typeof value === "string") {
    return isIdentifier ? value : redactText(value, { ...rules, prose: false });
  }
  // An item may be named by the one before: `["cvv", "123"]`.
  if (Array.isArray(value)) {
    return value.map((item, at) =>
      namesSecret(value[at - 1], rules) ? mask : redactValue(item, rules),
    );
  }
  if (typeof value !== "object") return value;
  const members = Object.entries(value);
  // `{"name": "cvv", "value": "123"}`
  const named = members.some(
    ([key, member]) =>
      /^(?:name|key|field|id|type|label|title)$/i.test(key) && namesSecret(member, rules),
  );
  return Object.fromEntries(
    members.map(([key, member]) => [
      maskCardNumbers(key),
      named && /^(?:value|values|data|content|text)$/i.test(key)
        ? mask
        : redactValue(member, rules, key),
    ]),
  );
}

function namesSecret(value: unknown, { isSecret }: Rules): boolean {
  return typeof value === "string" && isSecret(value);
}

interface TextRules extends Rules {
  /** Whether a mere space may separate a name from its value, even if that has no digit. */
  readonly prose: boolean;
}

/** A name, none of which is shorter; in a form it may have escapes and brackets: `card%5Bcvc%5D`. */
const names = /(?:[\w.[\]-]|%[0-9A-Fa-f]{2}){3,}/g;
/** What separates a name from its value: the name's closing quote, then `:`, `=` or `>`. */
const separator = /\s*(?:\\*["']\s*)?(?:[:=>]|%3[aAdD])>?\s*/y;
const space = /[^\S\r\n]+/y;
/** `CVV 123`, `the pin code is 1234`, `CVV "123"` */
const spaceBeforeDigit = /\s+(?:(?:is|was|code|number|no\.?)\s+){0,3}(?=["'([]{0,2}\d)/iy;
/** The quote that opens a value; it may itself be escaped. */
const quote = /\\*["']/y;
const quoted = { '"': /(?:[^"\\]|\\[\s\S])*/y, "'": /(?:[^'\\]|\\[\s\S])*/y } as const;
const bare = /[^,;&<>"'\r\n}\])]*/y;

/** Reads each character once or twice, whatever the text is: linear time. */
function redactText(text: string, { isSecret, prose }: TextRules): string {
  if (isSecret === isSecretName && !mayNameSecret(text)) return maskNumbers(text);
  let shown = "";
  let at = 0;
  /** The name before, if a space follows it. */
  let before = "";
  names.lastIndex = 0;
  for (let found = names.exec(text); found; found = names.exec(text)) {
    const [name] = found;
    const pair = before + name;
    before = /\s/.test(text[names.lastIndex] ?? "") ? name : "";
    // `security code`
    const isSecretPair = secretWords.has(pair.toLowerCase()) && isSecret(pair);
    if (!isSecretPair && !partsOf(name).some(isSecret)) continue;
    const from =
      skip(separator, text, names.lastIndex) ??
      skip(spaceBeforeDigit, text, names.lastIndex) ??
      (prose ? skip(space, text, names.lastIndex) : undefined);
    if (from === undefined) continue;
    const end = endOfValue(text, from);
    if (end === from) continue;
    shown += `${text.slice(at, from)}${mask}`;
    at = end;
    names.lastIndex = end;
  }
  return maskNumbers(shown + text.slice(at));
}

function maskNumbers(text: string): string {
  return maskEscapedNumbers(maskCardNumbers(text));
}

function partsOf(name: string): string[] {
  return unescaped(name).split(/[^\w-]+/);
}

/** Where the expression's match at this place ends; undefined if there is none. */
function skip(sticky: RegExp, text: string, from: number): number | undefined {
  sticky.lastIndex = from;
  return sticky.test(text) ? sticky.lastIndex : undefined;
}

function endOfValue(text: string, from: number): number {
  const open = skip(quote, text, from);
  if (open !== undefined) {
    const mark = text.slice(from, open);
    // A value in escaped quotes ends at the next quote with the same escapes.
    if (mark.length > 1) return endAt(text.indexOf(mark, open), mark.length, text);
    const end = skip(quoted[mark as '"'], text, open) ?? open;
    return Math.min(end + 1, text.length);
  }
  // In text that is not JSON the end of a list or an object is unknown: mask all that follows.
  if (text[from] === "[" || text[from] === "{") return text.length;
  return skip(bare, text, from) ?? from;
}

function endAt(found: number, length: number, text: string): number {
  return found < 0 ? text.length : found + length;
}

/** Masks card numbers whose digits are grouped by the escaped spaces of a form. */
function maskEscapedNumbers(text: string): string {
  return text.replace(/[\d%A-Fa-f+]{12,}/g, (run) => {
    if (!run.includes("%")) return run;
    const plain = unescaped(run);
    return maskCardNumbers(plain) === plain ? run : mask;
  });
}

/**
 * Whether a member of a body that was not understood is treated as secret: its name is that of a
 * field that the contract marks, in any spelling, or contains a secret word.
 */
export function isSecretName(name: string): boolean {
  if (name.length > maxNameLength) return isSecretName(name.slice(-maxNameLength));
  const plain = unescaped(name);
  const letters = squashed(plain);
  if (contractNames.has(letters)) return true;
  if (!secretLetters.test(letters)) return false;
  const words = plain
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== "");
  return words.some(
    (word, index) =>
      secretWords.has(word) ||
      secretWords.has(`${word}${words[index + 1] ?? ""}`) ||
      verificationCode.test(word),
  );
}

/** Whether a text may have a name that `isSecretName` accepts: most have none, and it is quick. */
function mayNameSecret(text: string): boolean {
  if (text.includes("%")) return true;
  const letters = squashed(text);
  return secretLetters.test(letters) || contractLetters.test(letters);
}

function squashed(text: string): string {
  return text.toLowerCase().replace(/[^a-z0-9]+/g, "");
}

/** A text with its percent escapes decoded; unchanged if they are malformed. */
function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** No real name is longer: of a longer one only the end is checked. */
const maxNameLength = 200;

/** Card verification codes also stand in longer words (`cardcvv`, `CVVCode`). */
const verificationCode = /cvv|cvc|securitycode|cardcode/;

/** Words, or two words in a row, in common names of card data, credentials and signatures. */
const secretWords: ReadonlySet<string> = new Set([
  ...["pan", "ccnumber", "cardnumber", "fullnumber", "accountnumber", "iban"],
  ...["csc", "cid", "cvn", "cvn2", "cvd", "cav", "cav2", "pin", "pinblock", "cryptogram"],
  ...["securitycode", "cardcode", "verificationcode", "verificationvalue"],
  ...["track1", "track2", "track3", "trackdata", "expiry", "expdate", "expmonth", "expyear"],
  ...["token", "accesstoken", "refreshtoken", "jwt", "bearer", "cookie", "authorization"],
  ...["password", "passwd", "pwd", "passphrase", "passcode", "otp", "secret", "credentials"],
  ...["apikey", "accesskey", "privatekey", "secretkey", "delegateapi", "signature"],
]);

/** A secret word, among letters and digits alone. */
const secretLetters = anyOf([...secretWords, verificationCode.source]);

/** Every field that the contract marks with `debug_redact`. */
const contractNames: ReadonlySet<string> = new Set(
  contractFiles.flatMap(({ messages }) => messages.flatMap(secretsOf)),
);

function secretsOf({ fields, nestedMessages }: DescMessage): string[] {
  return [
    ...fields.filter(isSecret).map(({ name }) => name.replaceAll("_", "")),
    ...nestedMessages.flatMap(secretsOf),
  ];
}

const contractLetters = anyOf([...contractNames]);

function anyOf(patterns: readonly string[]): RegExp {
  return new RegExp(patterns.join("|"));
}
