import { isIPv4 } from "node:net";
import { ApiError, invalid } from "./api-error.ts";
import { type Json, NumberText } from "./json.ts";

/**
 * Reads the members of one JSON object and checks them on the way: each reader returns undefined
 * for an absent member and throws an ApiError whose `param` is the member's path for a wrong one.
 * JSON null is wrong, since the spec calls one single request field nullable.
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

  /** A string, of the given format where one is given. */
  text(name: string, format?: TextFormat): string | undefined {
    if (!this.has(name)) return undefined;
    const value = this.#object[name];
    if (typeof value !== "string") throw invalid(this.path(name), "must be a string");
    if (format && !format.test(value)) throw invalid(this.path(name), `must be ${format.name}`);
    return value;
  }

  /** A string that has to be there and not to be empty. */
  requiredText(name: string, format?: TextFormat): string {
    return this.#required(name, this.text(name, format) || undefined);
  }

  /** A string that has to be there. */
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

  /** An amount above zero that travels as a JSON number: its own text. */
  amount(name: string): string | undefined {
    if (!this.has(name)) return undefined;
    const value = this.#object[name];
    if (!(value instanceof NumberText)) throw this.#wrongAmount(name, "must be a number");
    return this.#positive(name, value.text);
  }

  /** The same, which may be a string too. */
  amountOrText(name: string): string | undefined {
    return typeof this.#object[name] === "string"
      ? this.requiredAmountText(name)
      : this.amount(name);
  }

  requiredAmount(name: string): string {
    return this.#required(name, this.amount(name));
  }

  /** An amount above zero that travels as a string. */
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

/** A string format of the spec: its name ends the sentence "must be …". */
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

/** Callbacks and redirects go to such addresses alone. */
export const httpUrl: TextFormat = {
  name: "an http or https URL",
  test: (text) => /^https?:$/.test(URL.parse(text)?.protocol ?? ""),
};

export const decimal: TextFormat = {
  name: "a decimal number",
  test: (text) => /^-?\d{1,15}(\.\d{1,6})?$/.test(text),
};

/** At most `max` characters. */
export function upTo(max: number): TextFormat {
  return { name: `at most ${max} characters long`, test: (text) => [...text].length <= max };
}

/** A query parameter that has to be there. @throws ApiError */
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
