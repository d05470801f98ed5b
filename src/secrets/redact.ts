import type { DescMessage } from "@bufbuild/protobuf";
import { contractFiles } from "../model/contract.ts";
import { maskCardNumbers } from "./mask-card-numbers.ts";
import { isSecret } from "./secret-fields.ts";

/** The text that replaces a secret. */
export const mask = "[redacted]";

/**
 * A body as people may see it: indented JSON, whose numbers keep their digits. Only values under
 * names of the contract are shown, without those that it marks as secret and without card numbers;
 * nor is a text that may tell a secret in words. A body that is not JSON is not shown.
 */
export function redact(text: string): string {
  try {
    return JSON.stringify(redactValue(JSON.parse(text, keepDigits)), undefined, 2);
  } catch {
    return `[${text.length} characters that are not JSON, or nested too deep to be shown]`;
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

/** @param name of the member that holds the value, alone or in a list */
function redactValue(value: unknown, name = ""): unknown {
  if (value === null || value === "" || typeof value === "boolean") return value;
  if (tellsSecret(name)) return mask;
  if (Array.isArray(value)) return value.map((item) => redactValue(item, name));
  const isNumber = isRawJSON(value);
  if (typeof value === "object" && !isNumber) {
    const members = Object.entries(value);
    return Object.fromEntries(
      members.map(([key, member]) => [maskCardNumbers(key), redactValue(member, key)]),
    );
  }
  const text = isNumber ? value.rawJSON : String(value);
  if (!openNames.has(lettersOf(name)) || (/\d/.test(text) && tellsSecret(text))) return mask;
  const shown = maskCardNumbers(text);
  return shown === text ? value : shown;
}

/** Whether a name, or a text, has a word of card data, credentials or signatures. */
function tellsSecret(text: string): boolean {
  const words = text.replace(/([a-z0-9])([A-Z])/g, "$1 $2").toLowerCase();
  return secretWord.test(words);
}

const secretWord = new RegExp(
  [
    // These also stand in longer words: `cardcvv`, `CVVCode`.
    "cvv|cvc|(?:security|card|verification)[^a-z0-9]*(?:code|value)",
    `(?<![a-z])(?:${[
      "pan|csc|cid|cvn|cvd|cav|pin|pinblock|cryptogram|iban|track|trackdata",
      "(?:cc|card|full|account)[^a-z0-9]*number|exp(?:iry|[^a-z0-9]*(?:date|month|year))",
      "token|jwt|bearer|cookie|authorization|(?:api|access|private|secret)[^a-z0-9]*key",
      "password|passwd|pwd|passphrase|passcode|otp|secret|credentials|signature",
    ].join("|")})(?![a-z])`,
  ].join("|"),
);

function lettersOf(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]+/g, "");
}

const contractFields = contractFiles.flatMap(({ messages }) => messages.flatMap(fieldsOf));

function fieldsOf({ fields, nestedMessages }: DescMessage): DescMessage["fields"] {
  return [...fields, ...nestedMessages.flatMap(fieldsOf)];
}

/** Names of the contract, in letters alone, without those of a secret in any message. */
const openNames = new Set(contractFields.map(({ name }) => lettersOf(name)));
for (const { name } of contractFields.filter(isSecret)) openNames.delete(lettersOf(name));
// Next to a `name` it may hold anything: `{"name": "cvv", "value": "123"}`.
openNames.delete("value");
