import * as z from "zod";
import {
  amount,
  currency,
  decimal,
  email,
  filled,
  flag,
  httpUrl,
  integer,
  ipv4,
  link,
  text,
  texts,
  upTo,
  uuid,
} from "./fields.ts";
import { paymentMethod } from "./payment-method-request.ts";

/** The fields that the sandbox uses of the body of POST payments/v1/new. */
export type NewPayment = z.output<typeof newPaymentBody>;

/** What exists both in `customer` and at the top level. */
const display = {
  locale: z.enum(["UK", "EN", "ES", "PL", "FR", "SK", "DE"]).optional(),
  account_number: text.optional(),
  color_mode: z.enum(["white", "dark"]).optional(),
  ip_address: ipv4.optional(),
};

const person = {
  address: upTo(50).optional(),
  email: email.optional(),
  ...texts("city", "country", "external_id", "first_name", "last_name", "patronym", "phone"),
  ...texts("postal_code"),
};

/** Every field of a fingerprint is required, but may be empty. */
const fingerprint = z.object({
  browser_accept_header: text,
  browser_color_depth: text,
  browser_ip_address: text,
  browser_java_enabled: text,
  browser_language: text,
  browser_screen_height: text,
  browser_screen_width: text,
  browser_time_zone: text,
  browser_time_zone_offset: text,
  browser_user_agent: text,
});

const product = z
  .object({
    ...texts("category", "description", "id", "image", "url", "name", "currency"),
    vat_amount: decimal.optional(),
    quantity: decimal.optional(),
    net_amount: decimal.optional(),
    tax_group: integer(1, 9).optional(),
  })
  .transform(({ name, quantity, net_amount: netAmount, currency, tax_group: taxGroup }) => {
    return { name, quantity, netAmount, currency, taxGroup };
  });

const recipient = z.object({
  ...person,
  ...texts("rid", "tin"),
  payment_method: z.discriminatedUnion("type", [
    z.object({ type: z.literal("iban"), iban: z.object({ iban: filled }) }),
    z.object({ type: z.literal("cc_token"), cc_token: z.object({ token: filled }) }),
    z.object({ type: z.literal("wallet"), wallet: z.object({ option_id: uuid }) }),
    z.object({ type: z.literal("cc_number"), cc_number: z.object({ number: filled }) }),
  ]),
});

/** The whole body by the spec's table. */
export const newPaymentBody = z
  .object({
    mode: z.enum(["direct", "hosted", "express_checkout"]),
    customer: z.object({ ...display, ...person }).optional(),
    fingerprint: fingerprint.optional(),
    ...display,
    products: z.array(product).default([]),
    payment_method: paymentMethod,
    amount,
    currency,
    external_id: filled,
    callback_url: httpUrl.optional(),
    result_url: link.optional(),
    confirm: flag.default(true),
    init_recurrent_payment: flag.default(false),
    ...texts("unified_external_id", "description", "payload", "subscription_id"),
    recipient: recipient.optional(),
  })
  .superRefine(({ mode, customer, products, payment_method: { missing } }, { addIssue }) => {
    const lacks = (...path: string[]) => addIssue({ code: "custom", path, message: "is required" });
    if (mode === "direct" && !customer) lacks("customer");
    if (mode === "express_checkout" && products.length === 0) lacks("products");
    if (mode === "direct" && missing !== undefined) lacks("payment_method", missing);
  })
  .transform((body) => {
    const { customer = {}, payment_method: method, recipient: to } = body;
    return {
      ...{ amount: body.amount, currency: body.currency, mode: body.mode, confirm: body.confirm },
      externalId: body.external_id,
      unifiedExternalId: body.unified_external_id,
      callbackUrl: body.callback_url,
      resultUrl: body.result_url,
      ...{ description: body.description, payload: body.payload },
      initRecurrent: body.init_recurrent_payment,
      subscriptionId: body.subscription_id,
      customer: {
        email: customer.email,
        externalId: customer.external_id,
        firstName: customer.first_name,
        ipAddress: customer.ip_address ?? body.ip_address,
        lastName: customer.last_name,
        ...{ patronym: customer.patronym, phone: customer.phone },
        browserUserAgent: body.fingerprint?.browser_user_agent,
      },
      methodType: method.type,
      /** Always present in mode direct. */
      details: method.details,
      ...{ saveToWallet: method.saveToWallet, products: body.products },
      recipientIban: to?.payment_method.type === "iban" ? to.payment_method.iban.iban : undefined,
      colorMode: customer.color_mode ?? body.color_mode,
    };
  });
