import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type Message,
  ScalarType,
  toJson,
} from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence, type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { oncePer } from "../collections/once-per.ts";

/** Encodes a message as JSON text. */
export type WriteJson = (message: Message) => string;

/**
 * Compiles a writer of a message type's proto JSON. It writes the same text as `toJsonString`,
 * without the tree of objects that this makes first. protobuf-es writes what no answer of the contract
 * has (maps, bytes, floating-point numbers, messages with a JSON form of their own) and rejects values
 * that do not fit their field, so that errors are the same too. `test/rpc/json-writer.test.ts` compares the two.
 */
export function jsonWriterOf(desc: DescMessage): WriteJson {
  const write = writerOf(desc);
  return (message) => {
    try {
      return write(message as Properties);
    } catch {
      return JSON.stringify(toJson(desc, message));
    }
  };
}

type Properties = Message & Readonly<Record<string, unknown>>;

/** Returns a value's JSON, never undefined. @throws for a value that is not of the type */
type Write<Value = never> = (value: Value) => string;

/** Returns a field's JSON with a comma before it; an empty text for a field that is not set. */
type WriteField = (message: Properties) => string;

const writerOf = oncePer((desc: DescMessage): Write<Properties> => {
  const write = desc.typeName === TimestampSchema.typeName ? timestampText : compile(desc);
  return write as Write<Properties>;
});

function compile(desc: DescMessage): Write<Properties> {
  if (desc.typeName.startsWith("google.protobuf.") || desc.fields.some(isLeftToLibrary)) {
    return (message) => JSON.stringify(toJson(desc, message));
  }
  // Compiled on first use, since a message type may contain itself.
  let fields: readonly WriteField[] | undefined;
  return (message) => {
    if (message.$typeName !== desc.typeName) throw new TypeError(`no ${desc.typeName}`);
    fields ??= desc.fields.toSorted((a, b) => a.number - b.number).map(fieldWriter);
    let text = "";
    for (const write of fields) text += write(message);
    return text === "" ? "{}" : `{${text.slice(1)}}`;
  };
}

/** Whether protobuf-es must write messages with this field. */
function isLeftToLibrary(field: DescField): boolean {
  const { fieldKind, presence, scalar, enum: ofEnum, message } = field;
  if (fieldKind === "map" || presence === FeatureSet_FieldPresence.LEGACY_REQUIRED) return true;
  if (scalar !== undefined && !scalarWriters.has(scalar)) return true;
  const typeName = ofEnum?.typeName ?? message?.typeName ?? "";
  return typeName.startsWith("google.protobuf.") && typeName !== TimestampSchema.typeName;
}

function fieldWriter(field: DescField): WriteField {
  const opening = `,${JSON.stringify(field.jsonName)}:`;
  const { localName } = field;
  const write = valueWriter(field) as Write<unknown>;
  if (field.fieldKind === "list") {
    return (message) => {
      const items = message[localName] as readonly unknown[];
      if (items.length === 0) return "";
      let text = write(items[0]);
      for (let at = 1; at < items.length; at++) text += `,${write(items[at])}`;
      return `${opening}[${text}]`;
    };
  }
  if (field.oneof) {
    const oneof = field.oneof.localName;
    return (message) => {
      const chosen = message[oneof] as { readonly case?: string; readonly value?: unknown };
      return chosen.case === localName ? opening + write(chosen.value) : "";
    };
  }
  if (field.presence !== FeatureSet_FieldPresence.IMPLICIT) {
    return (message) => {
      const value = message[localName];
      // Outside proto3, a field that is not set has its default value on the prototype.
      return value !== undefined && Object.hasOwn(message, localName) ? opening + write(value) : "";
    };
  }
  const isZero = zeroOf(field);
  return (message) => {
    const value = message[localName];
    return isZero(value) ? "" : opening + write(value);
  };
}

function zeroOf(field: DescField): (value: unknown) => boolean {
  if (field.enum) {
    const zero = field.enum.values[0]?.number;
    return (value) => value === zero;
  }
  switch (field.scalar) {
    case ScalarType.BOOL:
      return (value) => value === false;
    case ScalarType.STRING:
      return (value) => value === "";
    default:
      return (value) => value === 0 || value === 0n || value === "0";
  }
}

function valueWriter(field: DescField): Write {
  if (field.message) return writerOf(field.message) as Write;
  if (field.enum) return enumWriter(field.enum);
  return scalarWriters.get(field.scalar as ScalarType) as Write;
}

const scalarWriters: ReadonlyMap<ScalarType, Write<unknown>> = new Map([
  [ScalarType.STRING, stringText],
  [ScalarType.BOOL, boolText],
  [ScalarType.INT32, numberText],
  [ScalarType.INT64, bigintText],
]);

function stringText(value: unknown): string {
  if (typeof value !== "string") throw new TypeError("no text");
  // Most texts need no escaping, and the test is cheaper than a call of `JSON.stringify`.
  return needsEscape.test(value) ? JSON.stringify(value) : `"${value}"`;
}

/** Includes surrogates, since `JSON.stringify` escapes lone ones. */
const needsEscape = /["\\\u0000-\u001f\ud800-\udfff]/;

function boolText(value: unknown): string {
  if (typeof value !== "boolean") throw new TypeError("no boolean");
  return value ? "true" : "false";
}

function numberText(value: unknown): string {
  if (typeof value !== "number") throw new TypeError("no number");
  return JSON.stringify(value);
}

function bigintText(value: unknown): string {
  if (typeof value !== "bigint") throw new TypeError("no 64-bit integer");
  return `"${value}"`;
}

/** An unknown value of an open enum is written as its number. */
function enumWriter({ value: values, typeName }: DescEnum): Write {
  const names = new Map(
    Object.values(values).map(({ number, jsonName }) => [number, JSON.stringify(jsonName)]),
  );
  return (value: unknown) => {
    if (typeof value !== "number") throw new TypeError(`no ${typeName}`);
    return names.get(value) ?? JSON.stringify(value);
  };
}

/** 9999-12-31T23:59:59Z. Times after it or before 1970 are left to protobuf-es. */
const lastSecond = 253_402_300_799n;
/** Cached texts of days by day since 1970: timestamps rarely span more than a few days. */
const textsOfDays = new Map<number, string>();
const maxDays = 1_000;

function timestampText({ seconds, nanos, $typeName }: Timestamp): string {
  const isPlain = $typeName === TimestampSchema.typeName && seconds >= 0n && seconds <= lastSecond;
  if (!isPlain || !(Number.isInteger(nanos) && nanos >= 0 && nanos <= 999_999_999)) {
    throw new RangeError("no plain instant");
  }
  const whole = Number(seconds);
  const ofDay = whole % 86_400;
  const hours = twoDigits(Math.floor(ofDay / 3_600));
  const minutes = twoDigits(Math.floor(ofDay / 60) % 60);
  return `"${dayText((whole - ofDay) / 86_400)}T${hours}:${minutes}:${twoDigits(ofDay % 60)}${fractionText(nanos)}Z"`;
}

function dayText(day: number): string {
  let text = textsOfDays.get(day);
  if (text === undefined) {
    text = new Date(day * 86_400_000).toISOString().slice(0, "0000-00-00".length);
    if (textsOfDays.size >= maxDays) textsOfDays.clear();
    textsOfDays.set(day, text);
  }
  return text;
}

/** The fraction of a second with 0, 3, 6 or 9 digits. */
function fractionText(nanos: number): string {
  if (nanos === 0) return "";
  const digits = String(nanos).padStart(9, "0");
  if (digits.endsWith("000000")) return `.${digits.slice(0, 3)}`;
  return digits.endsWith("000") ? `.${digits.slice(0, 6)}` : `.${digits}`;
}

function twoDigits(number: number): string {
  return number < 10 ? `0${number}` : String(number);
}
