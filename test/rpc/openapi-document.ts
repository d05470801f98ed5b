import { readFileSync } from "node:fs";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

type Json = Readonly<Record<string, unknown>>;

export interface Operation {
  readonly operationId: string;
  readonly responses: Json;
}

export interface Document extends Json {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Json>> };
}

export const document = JSON.parse(readFileSync("openapi.json", "utf8")) as Document;

export const card = { number: "4111111111111111", cvv: "123", expMonth: 12, expYear: 2031 };
/** A payment in the form of the document. */
export const payment = {
  ...{ amount: "10.10", currency: "UAH", mode: "PAYMENT_MODE_DIRECT", externalId: "order-1" },
  customer: { email: "jo@example.com", ipAddress: "127.0.0.1" },
  paymentMethod: { cc: card },
  resultUrl: "https://shop.example.com/done",
};

const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);
ajv.addFormat("int32", true).addFormat("int64", true);
ajv.addSchema(document, "openapi.json");

/** The check of a message by its schema in the document. */
export function schemaOf(name: string): ValidateFunction {
  const check = ajv.getSchema(`openapi.json#/components/schemas/${name}`);
  if (!check) throw new Error(`no schema of ${name}`);
  return check;
}
