import type { Payer, ProductRecord } from "../ledger/records.ts";
import { invalid } from "./api-error.ts";
import { decimal, email, type Fields, httpUrl, ipv4, link, upTo, uuid } from "./fields.ts";
import { readPaymentMethod } from "./payment-method-request.ts";

/** The fields that the sandbox uses of the body of POST payments/v1/new. */
export type NewPayment = ReturnType<typeof readNewPayment>;

/** Checks the whole body against the spec's table. @throws ApiError with the wrong field's path */
export function readNewPayment(body: Fields) {
  const mode = body.requiredChoice("mode", ["direct", "hosted", "express_checkout"]);
  const customer = mode === "direct" ? body.requiredObject("customer") : body.object("customer");
  const fingerprint = readFingerprint(body.object("fingerprint"));
  const display = readDisplay(body);
  const { payer, colorMode } = readCustomer(customer);
  const products = (body.list("products") ?? []).map(readProduct);
  if (mode === "express_checkout" && products.length === 0)
    throw invalid("products", "is required");
  const method = readPaymentMethod(body.requiredObject("payment_method"), mode === "direct");
  return {
    amount: body.requiredAmount("amount"),
    currency: body.requiredCurrency("currency"),
    mode,
    externalId: body.requiredText("external_id"),
    unifiedExternalId: body.text("unified_external_id"),
    callbackUrl: body.text("callback_url", httpUrl),
    resultUrl: body.text("result_url", link),
    confirm: body.flag("confirm") ?? true,
    description: body.text("description"),
    payload: body.text("payload"),
    initRecurrent: body.flag("init_recurrent_payment") ?? false,
    subscriptionId: body.text("subscription_id"),
    customer: {
      ...payer,
      ipAddress: payer.ipAddress ?? display.ipAddress,
      browserUserAgent: fingerprint,
    },
    methodType: method.type,
    /** Always present in mode direct. */
    details: method.details,
    saveToWallet: method.saveToWallet,
    products,
    recipientIban: readRecipientIban(body.object("recipient")),
    colorMode: colorMode ?? display.colorMode,
  };
}

/** Reads the fields that exist both in `customer` and at the top level. */
function readDisplay(fields: Fields) {
  fields.choice("locale", ["UK", "EN", "ES", "PL", "FR", "SK", "DE"]);
  fields.text("account_number");
  return {
    colorMode: fields.choice("color_mode", ["white", "dark"]),
    ipAddress: fields.text("ip_address", ipv4),
  };
}

function readCustomer(customer: Fields | undefined): {
  payer: Payer;
  colorMode?: "white" | "dark" | undefined;
} {
  if (!customer) return { payer: {} };
  const { colorMode, ipAddress } = readDisplay(customer);
  customer.text("address", upTo(50));
  for (const name of ["city", "country", "postal_code"]) customer.text(name);
  return {
    colorMode,
    payer: {
      email: customer.text("email", email),
      externalId: customer.text("external_id"),
      firstName: customer.text("first_name"),
      ipAddress,
      lastName: customer.text("last_name"),
      patronym: customer.text("patronym"),
      phone: customer.text("phone"),
    },
  };
}

/** The browser's user agent. Every field of a fingerprint is required, but may be empty. */
function readFingerprint(fingerprint: Fields | undefined): string | undefined {
  if (!fingerprint) return undefined;
  for (const name of [
    "browser_accept_header",
    "browser_color_depth",
    "browser_ip_address",
    "browser_java_enabled",
    "browser_language",
    "browser_screen_height",
    "browser_screen_width",
    "browser_time_zone",
    "browser_time_zone_offset",
  ]) {
    fingerprint.presentText(name);
  }
  return fingerprint.presentText("browser_user_agent");
}

function readProduct(product: Fields): ProductRecord {
  for (const name of ["category", "description", "id", "image", "url"]) product.text(name);
  product.text("vat_amount", decimal);
  return {
    name: product.text("name"),
    quantity: product.text("quantity", decimal),
    netAmount: product.text("net_amount", decimal),
    currency: product.text("currency"),
    taxGroup: product.integer("tax_group", 1, 9),
  };
}

function readRecipientIban(recipient: Fields | undefined): string | undefined {
  if (!recipient) return undefined;
  recipient.text("address", upTo(50));
  recipient.text("email", email);
  for (const name of [
    "city",
    "country",
    "external_id",
    "first_name",
    "last_name",
    "patronym",
    "phone",
    "postal_code",
    "rid",
    "tin",
  ]) {
    recipient.text(name);
  }
  const method = recipient.requiredObject("payment_method");
  const type = method.requiredChoice("type", ["iban", "cc_token", "wallet", "cc_number"]);
  const details = method.requiredObject(type);
  if (type === "iban") return details.requiredText("iban");
  if (type === "cc_token") details.requiredText("token");
  if (type === "wallet") details.requiredText("option_id", uuid);
  if (type === "cc_number") details.requiredText("number");
  return undefined;
}
