import * as z from "zod";
import { cvv } from "../ledger/cards.ts";
import type { MethodType } from "../ledger/records.ts";
import { cardNumber, filled, flag, integer, matching, text, texts, uuid } from "./fields.ts";

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

const use_3ds_flow = flag.default(false);
const expiry = { exp_month: integer(1, 12), exp_year: integer(0, 9999) };
const device = z.object({ token: filled, use_3ds_flow });

const subObjects = {
  cc: z.object({
    cvv: matching("3 or 4 digits", cvv),
    number: cardNumber,
    ...expiry,
    use_3ds_flow,
  }),
  cc_token: z.object({ token: filled, use_3ds_flow }),
  wallet: z.object({ option_id: uuid, use_3ds_flow }),
  apple_pay: device,
  google_pay: device,
  decrypted_apple_pay: z.object({
    // The spec does not show the expiry's format: accept any text, and let the card never expire.
    application_expiration_date: filled,
    online_payment_cryptogram: filled,
    ...texts("currency_code", "device_manufacturer_identifier", "transaction_id"),
    ...texts("ephemeral_public_key", "public_key_hash"),
    eci_indicator: text.nullish(),
    application_primary_account_number: cardNumber,
    use_3ds_flow,
  }),
  decrypted_google_pay: z.object({
    cryptogram: filled,
    ...texts("eci_indicator", "auth_method", "gateway_merchant_id", "message_id"),
    ...texts("message_expiration", "payment_method", "protocol_version"),
    ...{ pan: cardNumber, ...expiry, use_3ds_flow },
  }),
};

type SubObject = keyof typeof subObjects;

const ofType: Record<MethodType, readonly [SubObject, ...SubObject[]]> = {
  cc_number: ["cc"],
  card: ["cc"],
  cc_token: ["cc_token"],
  wallet: ["wallet"],
  apple_pay: ["apple_pay", "decrypted_apple_pay"],
  google_pay: ["google_pay", "decrypted_google_pay"],
};

/**
 * `payment_method`. Its details may be missing, where the customer enters them on a page: `missing`
 * then names them. Details that are given are checked all the same.
 */
export const paymentMethod = z
  .object({
    type: z.enum(["cc_token", "cc_number", "wallet", "google_pay", "apple_pay", "card"]),
    save_to_wallet: flag.default(false),
    ...z.object(subObjects).partial().shape,
  })
  .transform((method) => {
    const names = ofType[method.type];
    const name = names.find((one) => method[one] !== undefined);
    return {
      ...{ type: method.type, saveToWallet: method.save_to_wallet },
      details: name && detailsOf(method, name),
      missing: name === undefined ? names[0] : undefined,
    };
  });

type Given = { readonly [Name in SubObject]?: z.output<(typeof subObjects)[Name]> | undefined };

function detailsOf(method: Given, name: SubObject): CardDetails {
  const param = (member: string) => `payment_method.${name}.${member}`;
  const use3ds = method[name]?.use_3ds_flow ?? false;
  const { cc, cc_token, wallet, decrypted_apple_pay: apple, decrypted_google_pay: google } = method;
  const byNumber = (number: string, month: number, year: number, member: string) =>
    ({ by: "number", ...{ number, month, year, use3ds }, param: param(member) }) as const;
  switch (name) {
    case "cc":
      return byNumber(cc!.number, cc!.exp_month, cc!.exp_year, "number");
    case "cc_token":
      return { by: "token", token: cc_token!.token, use3ds, param: param("token") };
    case "wallet":
      return { by: "option", optionId: wallet!.option_id, use3ds, param: param("option_id") };
    case "decrypted_apple_pay": {
      const member = "application_primary_account_number";
      return byNumber(apple![member], 12, 2099, member);
    }
    case "decrypted_google_pay":
      return byNumber(google!.pan, google!.exp_month, google!.exp_year, "pan");
    case "apple_pay":
    case "google_pay":
      return { by: "device", use3ds, param: param("token") };
  }
}
