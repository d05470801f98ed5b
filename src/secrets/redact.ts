import type { DescMessage } from "@bufbuild/protobuf";
import { contractFiles } from "../model/contract.ts";
import { maskCardNumbers } from "./mask-card-numbers.ts";
import { isSecret } from "./secret-fields.ts";

/** The text that replaces a secret. */
export const mask = "[redacted]";

/**
 * A text as people may see it: card numbers and the values of secret members are masked. JSON is
 * indented, and its numbers keep their digits. Of text that is not JSON, such as a form, XML or JSON
 * that was cut off, nothing is shown behind the first secret name; nor of a string of JSON, if a
 * value may stand there. JSON that is nested too deep is not shown.
 */
export function redact(text: string): string {
  let value: unknown;
  try {
    value = JSON.parse(text, keepDigits);
  } catch {
    return redactText(text, anything);
  }
  try {
    return JSON.stringify(redactValue(value), undefined, 2);
  } catch {
    return `[${text.length} characters that are nested too deep to be shown]`;
  }
}

const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON(text: string): object;
  isRawJSON(value: unknown): value is { readonly rawJSON: string };
};

/** Reads a number of JSON so that `JSON.stringify` writes it digit for digit: for `JSON.parse`. */
export function keepDigits(_: string, value: unknown, context?: { source?: string }): unknown {
  return typeof value === "number" ? rawJSON(context?.source ?? String(value)) : value;
}

function redactValue(value: unknown, name = ""): unknown {
  if (value === null || value === "") return value;
  if (isSecretName(name)) return mask;
  if (isRawJSON(value)) {
    const shown = maskCardNumbers(value.rawJSON);
    return shown === value.rawJSON ? value : shown;
  }
  if (typeof value === "string") return redactText(value, valueInWords);
  // An item may be named by the one before: `["cvv", "123"]`.
  if (Array.isArray(value)) {
    return value.map((item, at) => (namesSecret(value[at - 1]) ? mask : redactValue(item)));
  }
  if (typeof value !== "object") return value;
  const members = Object.entries(value);
  // `{"name": "cvv", "value": "123"}`
  const named = members.some(
    ([key, member]) => /^(?:name|key|field|id|type|label|title)$/i.test(key) && namesSecret(member),
  );
  return Object.fromEntries(
    members.map(([key, member]) => [
      maskCardNumbers(key),
      named && /^(?:value|values|data|content|text)$/i.test(key) ? mask : redactValue(member, key),
    ]),
  );
}

function namesSecret(value: unknown): boolean {
  return typeof value === "string" && isSecretName(value);
}

/** A name, none of which is shorter; in a form it may have escapes and brackets: `card%5Bcvc%5D`. */
const names = /(?:[\w.[\]-]|%[0-9A-Fa-f]{2}){3,}/g;
const anything = /\S/;
/** `CVV 123`, `cvv=abc`; but `the token has expired` tells no value. */
const valueInWords = /[\d:=>%]/;

/** @param valueBehind what a text behind a secret name has if it may hold the value */
function redactText(text: string, valueBehind: RegExp): string {
  /** The name before, if a space follows it. */
  let before = "";
  for (const { 0: name, index } of text.matchAll(names)) {
    const pair = (before + name).toLowerCase();
    before = /\s/.test(text[index + name.length] ?? "") ? name : "";
    // `security code`
    if (!secretWords.has(pair) && !partsOf(name).some(isSecretName)) continue;
    // What follows its first letters may be the value already: `cvv%3D123`.
    const end = index + name.search(/[^a-z_]|$/i);
    if (!valueBehind.test(text.slice(end))) break;
    return maskNumbers(text.slice(0, end)) + mask;
  }
  return maskNumbers(text);
}

function maskNumbers(text: string): string {
  return maskEscapedNumbers(maskCardNumbers(text));
}

function partsOf(name: string): string[] {
  return unescaped(name).split(/[^\w-]+/);
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
const secretLetters = new RegExp([...secretWords, verificationCode.source].join("|"));

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
