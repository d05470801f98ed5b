import { isIPv4 } from "node:net";
import { ApiError, invalid } from "./api-error.ts";
import { type Json, NumberText } from "./json.ts";

/**
 * Reads and checks the members of one JSON object. Each reader returns undefined for an absent
 * member, and throws an ApiError with the member's path as `param` for a wrong one. JSON null is
 * wrong, since the spec calls only one request field nullable: `nullableText` reads that one.
 */
export class Fields {
  readonly #object: { [name: string]: Json };
  readonly #path: string;

  /** @throws ApiError when the value is not an object. */
  constructor(value: Json | undefined, path = "") {
    if (!isObject(value)) throw invalid(path || "body", "must be an object");
    this.#object = value;
    this.#path = path;
  }

  has(name: string): boolean {
    return Object.hasOwn(this.#object, name);
  }

  /** The member's full path, for errors. */
  path(name: string): string {
    return this.#path ? `${this.#path}.${name}` : name;
  }

  /** A string, in the given format if there is one. */
  text(name: string, format?: TextFormat): string | undefined {
    if (!this.has(name)) return undefined;
    const value = this.#object[name];
    if (typeof value !== "string") throw invalid(this.path(name), "must be a string");
    if (format && !format.test(value)) throw invalid(this.path(name), `must be ${format.name}`);
    return value;
  }

  /** A required string that must not be empty. */
  requiredText(name: string, format?: TextFormat): string {
    return this.#required(name, this.text(name, format) || undefined);
  }

  /** A required string that may be empty. */
  presentText(name: string): string {
    return this.#required(name, this.text(name));
  }

  nullableText(name: string): string | undefined {
    return this.has(name) && this.#object[name] === null ? undefined : this.text(name);
  }

  choice<Value extends string>(name: string, values: readonly Value[]): Value | undefined {
    return this.text(name, {
      name: `one of ${values.join(", ")}`,
      test: (text) => (values as readonly string[]).includes(text),
    }) as Value | undefined;
  }

  requiredChoice<Value extends string>(name: string, values: readonly Value[]): Value {
    return this.#required(name, this.choice(name, values));
  }

  flag(name: string): boolean | undefined {
    if (!this.has(name)) return undefined;
    const value = this.#object[name];
    if (typeof value !== "boolean") throw invalid(this.path(name), "must be a boolean");
    return value;
  }

  integer(name: string, min: number, max: number): number | undefined {
    if (!this.has(name)) return undefined;
    const value = this.#object[name];
    const number = value instanceof NumberText ? Number(value.text) : Number.NaN;
    if (!Number.isSafeInteger(number) || number < min || number > max) {
      throw invalid(this.path(name), `must be an integer from ${min} to ${max}`);
    }
    return number;
  }

  requiredInteger(name: string, min: number, max: number): number {
    return this.#required(name, this.integer(name, min, max));
  }

  /** An amount above zero that is sent as a JSON number; returns the number's own text. */
  amount(name: string): string | undefined {
    if (!this.has(name)) return undefined;
    const value = this.#object[name];
    if (!(value instanceof NumberText)) throw this.#wrongAmount(name, "must be a number");
    return this.#positive(name, value.text);
  }

  /** Like `amount`, but also accepts a string. */
  amountOrText(name: string): string | undefined {
    return typeof this.#object[name] === "string"
      ? this.requiredAmountText(name)
      : this.amount(name);
  }

  requiredAmount(name: string): string {
    return this.#required(name, this.amount(name));
  }

  /** A required amount above zero that is sent as a string. */
  requiredAmountText(name: string): string {
    return this.#positive(name, this.requiredText(name));
  }

  requiredCurrency(name: string): string {
    const currency = this.requiredText(name);
    if (!currencies.has(currency)) {
      throw new ApiError("invalid_currency", { param: this.path(name) });
    }
    return currency;
  }

  object(name: string): Fields | undefined {
    return this.has(name) ? new Fields(this.#object[name], this.path(name)) : undefined;
  }

  requiredObject(name: string): Fields {
    return this.#required(name, this.object(name));
  }

  list(name: string): Fields[] | undefined {
    if (!this.has(name)) return undefined;
    const value = this.#object[name];
    if (!Array.isArray(value)) throw invalid(this.path(name), "must be an array");
    return value.map((item, index) => new Fields(item, `${this.path(name)}[${index}]`));
  }

  #required<Value>(name: string, value: Value | undefined): Value {
    if (value === undefined) throw invalid(this.path(name), "is required");
    return value;
  }

  #positive(name: string, text: string): string {
    if (!decimal.test(text) || !/[1-9]/.test(text) || text.startsWith("-")) {
      throw this.#wrongAmount(name, "must be a decimal number above zero");
    }
    return text;
  }

  #wrongAmount(name: string, message: string): ApiError {
    const param = this.path(name);
    return new ApiError("wrong_amount", { param, message: `${param} ${message}` });
  }
}

/** A string format of the spec. The name completes the error text "must be …". */
export interface TextFormat {
  readonly name: string;
  test(text: string): boolean;
}

export const uuid: TextFormat = {
  name: "a uuid",
  test: (text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text),
};

export const email: TextFormat = {
  name: "an e-mail address",
  test: (text) => /^[^\s@]+@[^\s@]+$/.test(text),
};

export const ipv4: TextFormat = { name: "an IPv4 address", test: (text) => isIPv4(text) };

/** The only kind of URL that callbacks may go to. */
export const httpUrl: TextFormat = {
  name: "an http or https URL",
  test: (text) => /^https?:$/.test(protocolOf(text)),
};

/** What a browser may be sent to: a page, or a link into an app. */
export const link: TextFormat = {
  name: "a URL",
  test: (text) =>
    !/^(?:javascript|data|vbscript|blob|file|about):$/.test(protocolOf(text) || "data:"),
};

function protocolOf(text: string): string {
  return URL.parse(text)?.protocol ?? "";
}

export const decimal: TextFormat = {
  name: "a decimal number",
  test: (text) => /^-?\d{1,15}(\.\d{1,6})?$/.test(text),
};

/** At most `max` characters. */
export function upTo(max: number): TextFormat {
  return { name: `at most ${max} characters long`, test: (text) => [...text].length <= max };
}

/** A required query parameter. @throws ApiError */
export function requiredQuery(query: URLSearchParams, name: string): string {
  const value = query.get(name);
  if (!value) throw invalid(name, "is required");
  return value;
}

const currencies: ReadonlySet<string> = new Set(Intl.supportedValuesOf("currency"));

function isObject(value: Json | undefined): value is { [name: string]: Json } {
  return (
    typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof NumberText)
  );
}
