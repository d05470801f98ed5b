import { isUtf8 } from "node:buffer";
import type { DescFile, DescMessage } from "@bufbuild/protobuf";
import { file_payments_v1_customer } from "../gen/payments/v1/customer_pb.ts";
import { file_payments_v1_payment_input } from "../gen/payments/v1/payment_input_pb.ts";
import { file_payments_v1_payment } from "../gen/payments/v1/payment_pb.ts";
import { file_payments_v1_payment_service } from "../gen/payments/v1/payment_service_pb.ts";
import { file_payments_v1_payout } from "../gen/payments/v1/payout_pb.ts";
import { file_payments_v1_wallet } from "../gen/payments/v1/wallet_pb.ts";
import { maskCardNumbers } from "../secrets/mask-card-numbers.ts";
import { isSecret } from "../secrets/secret-fields.ts";
import { printable } from "./terminal.ts";

/**
 * A callback's body as a terminal may show it: members named like a secret of the contract are hidden
 * wherever they stand, card numbers are masked, controls are escaped. JSON is indented; its numbers
 * keep their digits. What is not text is only told of.
 */
export function maskedBody(body: Uint8Array): string {
  if (!isUtf8(body)) return `[${body.byteLength} bytes that are not UTF-8]`;
  const text = new TextDecoder().decode(body);
  let json: unknown;
  try {
    json = JSON.parse(text, masked);
  } catch {
    return masksInText(text);
  }
  return JSON.stringify(json, undefined, 2).replace(/[^\n]+/g, printable);
}

const redacted = "[redacted]";

function masked(this: unknown, name: string, value: unknown, context?: { source?: string }) {
  // The members of a list go by numbers: no name of the contract is one.
  if (secretNames.has(bare(name)) && value !== null) return redacted;
  if (typeof value === "string") return maskCardNumbers(value);
  if (typeof value !== "number" || context?.source === undefined) return value;
  const digits = maskCardNumbers(context.source);
  return digits === context.source ? (rawJson(digits) ?? value) : digits;
}

/** Broken JSON and anything else: what stands behind a name that is known, up to the next comma. */
function masksInText(text: string): string {
  const hidden = text.replace(MEMBER, (whole, opening: string, name: string) =>
    secretNames.has(bare(name)) ? `${opening}${redacted}` : whole,
  );
  return maskCardNumbers(hidden).replace(/[^\n]+/g, printable);
}

/** `"name": value`, `name=value`; the value may be cut off. */
const MEMBER = /(["']?([A-Za-z_][\w-]*)["']?\s*[:=]\s*)("(?:[^"\\]|\\.)*"?|[^\s,;&}\]]+)/g;

const rawJson = (JSON as { rawJSON?: (text: string) => unknown }).rawJSON ?? (() => undefined);

function bare(name: string): string {
  return name.toLowerCase().replace(/[_-]/g, "");
}

/** Every field that the contract marks `debug_redact`, and what others call the same. */
const secretNames: ReadonlySet<string> = new Set(
  [
    file_payments_v1_customer,
    file_payments_v1_payment,
    file_payments_v1_payment_input,
    file_payments_v1_payment_service,
    file_payments_v1_payout,
    file_payments_v1_wallet,
  ]
    .flatMap((file: DescFile) => file.messages.flatMap(secretsOf))
    .concat("card_number", "cvc", "cvv2", "cvc2", "password", "secret", "track1", "track2")
    .map(bare),
);

function secretsOf({ fields, nestedMessages }: DescMessage): string[] {
  return [
    ...fields.filter(isSecret).map((field) => field.name),
    ...nestedMessages.flatMap(secretsOf),
  ];
}
