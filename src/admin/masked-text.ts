import type { DescFile } from "@bufbuild/protobuf";
import { file_payments_v1_customer } from "../gen/payments/v1/customer_pb.ts";
import { file_payments_v1_payment_input } from "../gen/payments/v1/payment_input_pb.ts";
import { file_payments_v1_payment } from "../gen/payments/v1/payment_pb.ts";
import { file_payments_v1_payout } from "../gen/payments/v1/payout_pb.ts";
import { file_payments_v1_wallet } from "../gen/payments/v1/wallet_pb.ts";
import { maskCardNumbers } from "../secrets/mask-card-numbers.ts";
import { isSecret } from "../secrets/secret-fields.ts";

/** What stands where a secret was. */
export const mask = "••••••";

export interface MaskOptions {
  /** Members whose values are secret. Default: none. */
  readonly isSecretName?: (name: string) => boolean;
  /** Members that are known to hold identifiers, which may look like card numbers. Default: none. */
  readonly isIdentifier?: (name: string) => boolean;
}

/**
 * A text as people may see it, indented if it is JSON: without card numbers, and without the values of
 * secret members, also where the text is no JSON any more but still looks like it. Numbers keep their
 * digits.
 */
export function maskedText(text: string, options: MaskOptions = {}): string {
  try {
    const value: unknown = JSON.parse(text, keepDigits as Reviver);
    return JSON.stringify(masked(value, options), undefined, 2);
  } catch {
    // No JSON, or too deep to be walked.
    return maskedFragments(text, options);
  }
}

/**
 * Whether a member of a body that nobody understood is to be taken for a secret: by the names that the
 * contract marks, however they are spelled, and those that others use.
 */
export function isSecretName(name: string): boolean {
  return secretNames.has(name.toLowerCase().replace(/[^a-z0-9]/g, ""));
}

const secretNames: ReadonlySet<string> = new Set([
  ...[
    file_payments_v1_customer,
    file_payments_v1_payment,
    file_payments_v1_payment_input,
    file_payments_v1_payout,
    file_payments_v1_wallet,
  ].flatMap(secretsOf),
  ...["pan", "cardnumber", "ccnumber", "cvc", "cvc2", "cvv2", "pin", "track2"],
  ...["accesstoken", "apikey", "authorization", "password", "secret", "signature"],
]);

function secretsOf({ messages }: DescFile): string[] {
  return messages.flatMap(({ fields }) =>
    fields.filter(isSecret).map(({ name }) => name.replaceAll("_", "")),
  );
}

type Reviver = (key: string, value: unknown) => unknown;

/** A number as its text. */
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

function masked(value: unknown, options: MaskOptions, name = "", secret = false): unknown {
  const plain = options.isIdentifier?.(name) ?? false;
  if (value instanceof Digits) {
    if (secret) return mask;
    const shown = plain ? value.text : maskCardNumbers(value.text);
    return shown === value.text ? rawJSON(value.text) : shown;
  }
  if (typeof value === "string") {
    if (secret) return value === "" ? "" : mask;
    return plain ? value : maskCardNumbers(value);
  }
  if (Array.isArray(value)) return value.map((item) => masked(item, options, name, secret));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [
      maskCardNumbers(key),
      masked(member, options, key, secret || (options.isSecretName?.(key) ?? false)),
    ]),
  );
}

/** A name in quotes, a colon, and a value up to where it ends or the text does. */
const member = /("(?:[^"\\]|\\.)*"\s*:\s*)("(?:[^"\\]|\\.)*"?|[^\s,{}[\]"]+)/g;

function maskedFragments(text: string, { isSecretName }: MaskOptions): string {
  const hidden = text.replace(member, (all: string, opening: string) =>
    isSecretName?.(opening) ? `${opening}"${mask}"` : all,
  );
  return maskCardNumbers(hidden);
}
