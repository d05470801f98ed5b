import { checkCardNumber, cvv } from "../ledger/cards.ts";
import type { MethodType } from "../ledger/records.ts";
import { type Fields, uuid } from "./fields.ts";

/** The card to charge, as the request identifies it. */
export type CardDetails = (
  | {
      readonly by: "number";
      readonly number: string;
      readonly month: number;
      readonly year: number;
    }
  | { readonly by: "token"; readonly token: string }
  | { readonly by: "option"; readonly optionId: string }
  /** The token of a device wallet, which the sandbox cannot read. */
  | { readonly by: "device" }
) & {
  readonly use3ds: boolean;
  /** Path of the member that names the card. */
  readonly param: string;
};

export interface PaymentMethodRequest {
  readonly type: MethodType;
  readonly details: CardDetails | undefined;
  readonly saveToWallet: boolean;
}

/**
 * Reads `payment_method`. Unless `required`, the details may be missing, since the customer enters
 * them on a page; details that are given are checked all the same.
 */
export function readPaymentMethod(method: Fields, required: boolean): PaymentMethodRequest {
  const type = method.requiredChoice("type", [
    "cc_token",
    "cc_number",
    "wallet",
    "google_pay",
    "apple_pay",
    "card",
  ]);
  const name = subObjects[type].find((candidate) => method.has(candidate)) ?? subObjects[type][0];
  const details = required ? method.requiredObject(name) : method.object(name);
  return {
    type,
    details: details && {
      ...readers[name](details),
      use3ds: details.flag("use_3ds_flow") ?? false,
    },
    saveToWallet: method.flag("save_to_wallet") ?? false,
  };
}

type SubObject = keyof typeof readers;

const subObjects: Record<MethodType, readonly [SubObject, ...SubObject[]]> = {
  cc_number: ["cc"],
  card: ["cc"],
  cc_token: ["cc_token"],
  wallet: ["wallet"],
  apple_pay: ["apple_pay", "decrypted_apple_pay"],
  google_pay: ["google_pay", "decrypted_google_pay"],
};

const readers = {
  cc(fields: Fields) {
    fields.requiredText("cvv", cvv);
    return byNumber(fields, "number");
  },
  cc_token(fields: Fields) {
    const token = fields.requiredText("token");
    return { by: "token", token, param: fields.path("token") } as const;
  },
  wallet(fields: Fields) {
    const optionId = fields.requiredText("option_id", uuid);
    return { by: "option", optionId, param: fields.path("option_id") } as const;
  },
  apple_pay: device,
  google_pay: device,
  decrypted_apple_pay(fields: Fields) {
    fields.requiredText("application_expiration_date");
    fields.requiredText("online_payment_cryptogram");
    for (const name of [
      "currency_code",
      "device_manufacturer_identifier",
      "transaction_id",
      "ephemeral_public_key",
      "public_key_hash",
    ]) {
      fields.text(name);
    }
    fields.nullableText("eci_indicator");
    const param = fields.path("application_primary_account_number");
    const number = fields.requiredText("application_primary_account_number");
    // The spec does not show the expiry's format: accept any text, and let the card never expire.
    return { by: "number", number: checkCardNumber(number, param), ...farOff, param } as const;
  },
  decrypted_google_pay(fields: Fields) {
    fields.requiredText("cryptogram");
    for (const name of [
      "eci_indicator",
      "auth_method",
      "gateway_merchant_id",
      "message_id",
      "message_expiration",
      "payment_method",
      "protocol_version",
    ]) {
      fields.text(name);
    }
    return byNumber(fields, "pan");
  },
};

const farOff = { month: 12, year: 2099 };

function byNumber(fields: Fields, name: string) {
  const param = fields.path(name);
  return {
    by: "number",
    number: checkCardNumber(fields.requiredText(name), param),
    month: fields.requiredInteger("exp_month", 1, 12),
    year: fields.requiredInteger("exp_year", 0, 9999),
    param,
  } as const;
}

function device(fields: Fields) {
  fields.requiredText("token");
  return { by: "device", param: fields.path("token") } as const;
}
