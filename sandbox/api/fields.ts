import { isIPv4 } from "node:net";
import * as z from "zod";
import { isCardNumber } from "../ledger/cards.ts";
import { ApiError, type ApiErrorCode, invalid } from "./api-error.ts";

/** An amount that is a JSON number, as its own text, so that `10.10` stays `10.10`. */
class NumberText {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  toString(): string {
    return this.#text;
  }
}

/**
 * Reads a request's JSON body. Members that the schema does not name are ignored; JSON null is wrong,
 * since the spec calls only one request field nullable.
 * @throws ApiError with the path of the first wrong member as `param`
 */
export function readBody<Schema extends z.ZodType>(schema: Schema, text: string): z.output<Schema> {
  let body: unknown;
  try {
    body = JSON.parse(text, keepText as (key: string, value: unknown) => unknown);
  } catch {
    // The parser's message quotes the body, which may hold card data.
    throw invalid("body", "must be JSON");
  }
  const { data, error } = schema.safeParse(body);
  if (!error) return data;
  const [{ path, message, ...issue }] = error.issues as [z.core.$ZodIssue];
  const param = z.core.toDotPath(path);
  const given = path.reduce<unknown>((value, key) => (value as never)?.[key], body);
  if (given === undefined || given === "") throw invalid(param, "is required");
  const code: ApiErrorCode | undefined = "params" in issue ? issue.params?.code : undefined;
  if (code === undefined) throw invalid(param || "body", message);
  throw new ApiError(code, { param, message: `${param} ${message}` });
}

function keepText(key: string, value: unknown, { source }: { source?: string }): unknown {
  return key === "amount" && typeof value === "number" ? new NumberText(`${source}`) : value;
}

/** What a refinement says of a wrong value, with an error code of its own. */
export const coded = (code: ApiErrorCode, message = "is wrong") => ({ params: { code }, message });

/** May be empty. */
export const text = z.string("must be a string");
export const filled = text.min(1);
export const flag = z.boolean("must be a boolean");

/** Texts that may be absent. */
export function texts<const Name extends string>(...names: readonly Name[]) {
  const all = names.map((name) => [name, text.optional()] as const);
  return Object.fromEntries(all) as Record<Name, z.ZodOptional<typeof text>>;
}

/** The error text is "must be …". */
export const matching = (what: string, pattern: RegExp) => text.regex(pattern, `must be ${what}`);

export const isUuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
export const uuid = matching("a uuid", isUuid);
export const email = matching("an e-mail address", /^[^\s@]+@[^\s@]+$/);
export const decimal = matching("a decimal number", /^-?\d{1,15}(\.\d{1,6})?$/);
export const ipv4 = text.refine(isIPv4, "must be an IPv4 address");

/** The only kind of URL that callbacks may go to. */
export const httpUrl = text.refine(
  (url) => /^https?:$/.test(protocolOf(url)),
  "must be an http or https URL",
);

/** What a browser may be sent to: a page, or a link into an app. */
export const link = text.refine(
  (url) => !/^(?:javascript|data|vbscript|blob|file|about):$/.test(protocolOf(url) || "data:"),
  "must be a URL",
);

function protocolOf(url: string): string {
  return URL.parse(url)?.protocol ?? "";
}

/** At most `max` characters. */
export const upTo = (max: number) =>
  text.refine((given) => [...given].length <= max, `must be at most ${max} characters long`);

export const integer = (min: number, max: number) => {
  const error = `must be an integer from ${min} to ${max}`;
  return z.int(error).min(min, error).max(max, error);
};

const isPositive = (text: string) => /^\d{1,15}(\.\d{1,6})?$/.test(text) && /[1-9]/.test(text);

const wrongAmount = coded("wrong_amount", "must be a decimal number above zero");

/** An amount above zero that is sent as a JSON number: the number's own text. */
export const amount = z
  .custom<NumberText>((given) => given instanceof NumberText && isPositive(`${given}`), wrongAmount)
  .transform(String);

/** One that is sent as a string. */
export const amountText = filled.refine(isPositive, wrongAmount);

/** One that is sent as either. */
export const amountOrText = z
  .custom<NumberText | string>(
    (given) => (typeof given === "string" || given instanceof NumberText) && isPositive(`${given}`),
    wrongAmount,
  )
  .transform(String);

const currencies: ReadonlySet<string> = new Set(Intl.supportedValuesOf("currency"));
export const currency = filled.refine((code) => currencies.has(code), coded("invalid_currency"));

export const cardNumber = filled.refine(isCardNumber, coded("wrong_card_number"));

/** A required query parameter. @throws ApiError */
export function requiredQuery(query: URLSearchParams, name: string): string {
  const value = query.get(name);
  if (!value) throw invalid(name, "is required");
  return value;
}
