import { create, type DescEnum, type DescMessage } from "@bufbuild/protobuf";
import { oncePer } from "../collections/once-per.ts";
import type { PayoutEnds } from "../model/payout-statuses.ts";
import { unrecognizedText } from "../model/unrecognized.ts";
import { isJsonObject } from "../net/json.ts";
import { maskCardNumbers } from "../secrets/mask-card-numbers.ts";
import { parseWithNumberTexts, plainDecimal, soleNumber } from "./number.ts";
import { type WireField, type WireKind, wireFields, wireTexts } from "./plan.ts";
import { readInstant } from "./time.ts";

/** Something in the JSON that could not be read as it is. */
export interface WireFault {
  /** The path in JSON names (`details.status`, `products[].quantity`), never with a value. */
  path: string;
  /**
   * `unset`: a field of an unexpected type or range. `malformed`: a text with half of a surrogate
   * pair, which is read as U+FFFD. `unknown_shape`: an object without any known member, left out.
   * `unrecognized`: a value outside the field's enum, which is left unspecified.
   */
  kind: "unset" | "malformed" | "unknown_shape" | "unrecognized";
  /** What the service said, with kind `unrecognized`; see `unrecognizedText`. */
  value?: string;
}

/** How JSON is read. */
export interface DecodeOptions {
  /** Called for each fault. Default: faults are not reported. */
  onFault?: ((fault: WireFault) => void) | undefined;
  /** The service's final payout statuses, for `decodePayout`. Default: success and failure. */
  payoutEnds?: PayoutEnds | undefined;
  /**
   * Redacts secrets of the request in a free text, or in a value outside an enum, which may quote
   * them. Default: nothing is redacted.
   */
  hideSecrets?: ((text: string) => string) | undefined;
}

/** A JSON object as `JSON.parse` gives it, or a message as protobuf-es holds it. */
export type Properties = Record<string, unknown>;

/** Reads one JSON object into a new message of the type. */
export function readMessage(desc: DescMessage, json: Properties, walk: Walk): Properties {
  return messageOf(planOf(desc), json, walk, undefined);
}

/**
 * Reads each object of a list. Any other element, and an object without any known member, is left
 * out and reported as a fault at its position.
 */
export function readMessages(
  desc: DescMessage,
  list: readonly unknown[],
  walk: Walk,
): Properties[] {
  const read = messageReader(desc);
  return list.flatMap((json, index): Properties[] => {
    const message = read(json, walk, undefined, index) as Properties | undefined;
    if (message && !isBlank(desc, message)) return [message];
    if (message) walk.fault(undefined, index, "unknown_shape");
    return [];
  });
}

/** Whether nothing was read into a message. Its fields must all distinguish absent from empty. */
function isBlank(desc: DescMessage, message: Properties): boolean {
  return Object.keys(message).length === Object.keys(create(desc)).length;
}

/** The state of reading one text: reports faults, and finds the digits that `JSON.parse` lost. */
export class Walk {
  readonly #text: string;
  readonly #onFault: DecodeOptions["onFault"];
  readonly hideSecrets: DecodeOptions["hideSecrets"];
  #withNumberTexts: unknown;

  constructor(text: string, options: DecodeOptions = {}) {
    this.#text = text;
    this.#onFault = options.onFault;
    this.hideSecrets = options.hideSecrets;
  }

  /** Reports the member `key` of `parent`. @returns undefined, the value of an unset field */
  fault(
    parent: Position | undefined,
    key: Key,
    kind: WireFault["kind"] = "unset",
    value?: string,
  ): undefined {
    if (this.#onFault === undefined) return;
    let path = "";
    for (const step of pathTo(parent, key)) {
      if (typeof step === "number") path += "[]";
      else path += path === "" ? step : `.${step}`;
    }
    this.#onFault({ path, kind, ...(value !== undefined && { value: unrecognizedText(value) }) });
  }

  /**
   * The text with lone surrogates read as U+FFFD, which it reports: the log, the store and all
   * callers need text that UTF-8 can encode.
   */
  wellFormed(text: string, parent: Position | undefined, key: Key): string {
    if (text.isWellFormed()) return text;
    this.fault(parent, key, "malformed");
    return text.toWellFormed();
  }

  /** The source text of the number that is the member `key` of `parent`. */
  numberText(parent: Position | undefined, key: Key): string {
    // In a long text, each search for the member could take as long as to read all numbers once.
    const isShort = this.#text.length <= shortChars && typeof key === "string";
    const sole = isShort ? soleNumber(this.#text, key) : undefined;
    if (sole !== undefined) return sole;
    this.#withNumberTexts ??= parseWithNumberTexts(this.#text);
    let value = this.#withNumberTexts;
    for (const step of pathTo(parent, key)) value = (value as Properties)[step];
    return value as string;
  }
}

const shortChars = 16 * 1024;

type Key = string | number;

/** The position of a value in the JSON: the keys that lead to it, in a list from the last one. */
export interface Position {
  readonly parent: Position | undefined;
  readonly key: Key;
}

function pathTo(parent: Position | undefined, key: Key): Key[] {
  const path = [key];
  for (let at = parent; at !== undefined; at = at.parent) path.unshift(at.key);
  return path;
}

/**
 * Reads a JSON value other than null. For a value that the field cannot hold, reports a fault and
 * returns undefined.
 */
type Read = (value: unknown, walk: Walk, parent: Position | undefined, key: Key) => unknown;

interface Plan {
  /** What a new message contains from the start: its type's name, and zeros of implicit fields. */
  readonly zeros: ReadonlyArray<readonly [property: string, zero: unknown]>;
  readonly lists: readonly string[];
  readonly oneofs: readonly string[];
  readonly fields: readonly PlannedField[];
}

interface PlannedField {
  readonly member: string;
  readonly property: string;
  readonly oneofCase: string | undefined;
  /** Strings of up to this length are taken unchanged, without the call of `read`. */
  readonly asItIsTo: number;
  readonly read: Read;
}

const planOf = oncePer((desc: DescMessage): Plan => {
  const blank = Object.entries(create(desc));
  return {
    zeros: blank.filter(([, zero]) => typeof zero !== "object"),
    lists: blank.filter(([, zero]) => Array.isArray(zero)).map(([property]) => property),
    oneofs: blank.filter(([, zero]) => isJsonObject(zero)).map(([property]) => property),
    fields: wireFields(desc).map(plannedField),
  };
});

function plannedField(given: WireField): PlannedField {
  const { field, member, kind, isFreeText, maskFromDigits = Number.POSITIVE_INFINITY } = given;
  const { oneof, localName } = field;
  const isList = field.fieldKind === "list";
  const read = reader(given);
  return {
    member,
    property: oneof?.localName ?? localName,
    oneofCase: oneof && localName,
    asItIsTo: !isList && !isFreeText && textKinds.has(kind) ? maskFromDigits - 1 : -1,
    read: isList ? listReader(read) : read,
  };
}

const textKinds: ReadonlySet<WireKind> = new Set(["string", "number"]);

/**
 * Makes a message of the shape that protobuf-es's `create` gives it for proto3: a plain object with
 * `$typeName`, zeros of implicit fields, and nothing for what is absent.
 */
function messageOf(
  plan: Plan,
  json: Properties,
  walk: Walk,
  here: Position | undefined,
): Properties {
  const message: Properties = {};
  for (const [property, zero] of plan.zeros) message[property] = zero;
  for (const property of plan.lists) message[property] = [];
  for (const property of plan.oneofs) message[property] = { case: undefined };

  for (const { member, property, oneofCase, asItIsTo, read } of plan.fields) {
    const value = json[member];
    if (value === undefined || value === null) continue;
    const asItIs = typeof value === "string" && value.length <= asItIsTo && value.isWellFormed();
    const result = asItIs ? value : read(value, walk, here, member);
    if (result === undefined) continue;
    if (oneofCase === undefined) {
      message[property] = result;
    } else if ((message[property] as { case?: string }).case === undefined) {
      message[property] = { case: oneofCase, value: result };
    } else {
      walk.fault(here, member); // A second member of a oneof: keep the first.
    }
  }
  return message;
}

function reader({ field, kind, maskFromDigits, isFreeText }: WireField): Read {
  switch (kind) {
    case "string":
      return maskFromDigits === undefined && !isFreeText
        ? readText
        : shownReader(maskFromDigits, isFreeText);
    case "number":
      return readText;
    case "bool":
      return readBool;
    case "int32":
      return readInt32;
    case "int64":
      return readInt64;
    case "instant":
      return readTimestamp;
    case "enum":
      return enumReader(field.enum as DescEnum);
    case "message":
      return messageReader(field.message as DescMessage);
  }
}

const readText: Read = (value, walk, parent, key) => {
  if (typeof value === "string") return walk.wellFormed(value, parent, key);
  if (typeof value !== "number") return walk.fault(parent, key);
  return plainDecimal(walk.numberText(parent, key)) ?? walk.fault(parent, key);
};

/** Reads a text in which card numbers are masked. A phone number has its plus sign and stays. */
function shownReader(minDigits = Number.POSITIVE_INFINITY, isFreeText: boolean): Read {
  return (value, walk, parent, key) => {
    let text = readText(value, walk, parent, key) as string | undefined;
    if (!text) return text;
    if (text.length >= minDigits && !phoneNumber.test(text))
      text = maskCardNumbers(text, minDigits);
    return isFreeText && walk.hideSecrets ? walk.hideSecrets(text) : text;
  };
}

/** E.164: at most 15 digits. */
const phoneNumber = /^\+\d{7,15}$/;

const readBool: Read = (value, walk, parent, key) =>
  typeof value === "boolean" ? value : walk.fault(parent, key);

const readInt32: Read = (value, walk, parent, key) => {
  const number = typeof value === "string" && integerText.test(value) ? Number(value) : value;
  if (typeof number !== "number") return walk.fault(parent, key);
  const integer = number | 0; // Also makes 0 of -0.
  return integer === number ? integer : walk.fault(parent, key);
};

const readInt64: Read = (value, walk, parent, key) => {
  if (Number.isSafeInteger(value)) return BigInt(value as number);
  let digits: string | undefined;
  if (typeof value === "string") digits = value;
  else if (typeof value === "number") {
    digits = plainDecimal(walk.numberText(parent, key))?.replace(/\.0+$/, "");
  }
  if (digits === undefined || !integerText.test(digits)) return walk.fault(parent, key);
  const integer = BigInt(digits);
  return BigInt.asIntN(64, integer) === integer ? integer : walk.fault(parent, key);
};

/** Bounded, so that no text can make a BigInt of a megabyte of digits. */
const integerText = /^-?[0-9]{1,40}$/;

const readTimestamp: Read = (value, walk, parent, key) =>
  (typeof value === "string" ? readInstant(value) : undefined) ?? walk.fault(parent, key);

/** Reads the service's enum texts in upper, lower or mixed case. */
function enumReader(desc: DescEnum): Read {
  const numbers = new Map<unknown, number>();
  for (const { number, text } of wireTexts(desc)) {
    numbers.set(text, number).set(text.toLowerCase(), number);
  }
  return (value, walk, parent, key) => {
    const number =
      numbers.get(value) ??
      (typeof value === "string" ? numbers.get(value.toLowerCase()) : undefined);
    if (number !== undefined) return number;
    const text = typeof value === "number" ? walk.numberText(parent, key) : value;
    if (typeof text !== "string") return walk.fault(parent, key);
    if (text.trim() === "") return undefined; // It says nothing, as null does.
    return walk.fault(parent, key, "unrecognized", walk.hideSecrets?.(text) ?? text);
  };
}

function messageReader(desc: DescMessage): Read {
  let plan: Plan | undefined; // Looked up on first use: a type may contain itself.
  return (value, walk, parent, key) => {
    if (!isJsonObject(value)) return walk.fault(parent, key);
    plan ??= planOf(desc);
    return messageOf(plan, value, walk, { parent, key });
  };
}

/** Elements that cannot be read, null included, are reported and left out. */
function listReader(read: Read): Read {
  return (value, walk, parent, key) => {
    if (!Array.isArray(value)) return walk.fault(parent, key);
    const here = { parent, key };
    const list: unknown[] = [];
    for (let index = 0; index < value.length; index++) {
      const element =
        value[index] === null ? walk.fault(here, index) : read(value[index], walk, here, index);
      if (element !== undefined) list.push(element);
    }
    return list;
  };
}
