import {
  type DescEnum,
  type DescField,
  type DescMessage,
  fromJson,
  type JsonValue,
  ScalarType,
} from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { type FieldViolation, GatewayError, invalidFields } from "../errors.ts";
import { isOfCalendar } from "../model/instant.ts";
import { isJsonObject } from "../net/json.ts";

/**
 * The error for a JSON request that protobuf-es refused. Its own error quotes the value that did not
 * fit, which may be a card number, and does not say where it is. This one names the path of the
 * field and what is expected there, in words from the schema only.
 * @param refusal the text of protobuf-es's error
 */
export function errorOfJson(request: DescMessage, text: string, refusal: string): GatewayError {
  // In what JSON.parse returns, only one of two equal keys is left.
  const twice = duplicateKey.exec(refusal)?.[1];
  if (twice !== undefined)
    return invalid(`${isName(twice) ? `the key "${twice}"` : "a key"} is given twice`);
  const json = parsed(text);
  if (!isJsonObject(json)) return invalid("the request is not a JSON object");
  const { path, message } = violationIn(request, json, "") ?? {
    path: "",
    message: "cannot be read",
  };
  return path === "" ? invalid(`the request ${message}`) : invalidFields([{ path, message }]);
}

/** Refuses a JSON request with a field that protobuf-es reads as another value. @throws GatewayError */
export function refuseViolation(request: DescMessage, text: string): void {
  const violation = violationIn(request, JSON.parse(text), "");
  if (violation) throw invalidFields([violation]);
}

const duplicateKey =
  /^Error: cannot decode message [\w.]+ from JSON: duplicate object key "(.*)"$/s;

/** The error for a request in which no single field is at fault. */
export function invalid(message: string): GatewayError {
  return new GatewayError("INVALID_ARGUMENT", message);
}

/** Undefined for a text that is not JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The first violation in an object; undefined if each of its members is taken. */
function violationIn(type: DescMessage, json: object, path: string): FieldViolation | undefined {
  const given = new Set<unknown>();
  for (const [key, value] of Object.entries(json)) {
    const field = type.fields.find(({ name, jsonName }) => name === key || jsonName === key);
    // A key that does not look like a field's name may be a value, and must not be quoted.
    if (!field && !isName(key)) return { path, message: "has a key that is not a field" };
    const here = path === "" ? (field?.name ?? key) : `${path}.${field?.name ?? key}`;
    if (!field) return { path: here, message: "is not a field of the request" };
    if (given.has(field)) return { path: here, message: "is given twice" };
    given.add(field);
    if (value === null) continue;
    const { oneof } = field;
    if (oneof && given.has(oneof)) {
      const names = oneof.fields.map(({ name }) => name).join(", ");
      return { path, message: `may hold only one of ${names}` };
    }
    given.add(oneof);
    const violation = violationAt(field, value, here);
    if (violation) return violation;
  }
  return undefined;
}

const isName = (key: string) => /^[A-Za-z_]\w{0,63}$/.test(key);

function violationAt(field: DescField, value: unknown, path: string): FieldViolation | undefined {
  if (field.fieldKind !== "list") return violationOf(field, value, path);
  if (!Array.isArray(value)) return { path, message: "must be a list" };
  for (const [index, item] of value.entries()) {
    const violation = violationOf(field, item, `${path}[${index}]`);
    if (violation) return violation;
  }
  return undefined;
}

/** @param value of a list, one of its items */
function violationOf(field: DescField, value: unknown, path: string): FieldViolation | undefined {
  const { message } = field;
  const isOurs = message && !message.typeName.startsWith("google.protobuf.");
  if (isOurs && isJsonObject(value)) return violationIn(message, value, path);
  const json = (field.fieldKind === "list" ? [value] : value) as JsonValue;
  try {
    fromJson(field.parent, { [field.name]: json });
    if (!isInstant(field) || isOfCalendar(value as string)) return undefined;
    return { path, message: `must be ${nounOf(field)}` };
  } catch (error) {
    const isHalf = String(error).endsWith(": expected string: invalid UTF8");
    const expected = isHalf ? "Unicode, without half of a surrogate pair" : nounOf(field);
    return { path, message: `must be ${expected}` };
  }
}

export function isInstant({ message }: DescField): boolean {
  return message?.typeName === TimestampSchema.typeName;
}

/** A value of the field; of a list, one of its items. */
function nounOf({ message, enum: ofEnum, scalar }: DescField): string {
  if (message) return jsonForms[message.typeName] ?? "an object";
  if (ofEnum) return namesOf(ofEnum);
  return scalarNouns[scalar as ScalarType] ?? "of another type";
}

function namesOf({ values }: DescEnum): string {
  const names = values.filter(({ number }) => number !== 0).map(({ name }) => name);
  return `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
}

const scalarNouns: Partial<Record<ScalarType, string>> = {
  [ScalarType.STRING]: "a string",
  [ScalarType.BOOL]: "true or false",
  [ScalarType.INT32]: "an integer of 32 bits",
  [ScalarType.UINT32]: "an integer of 32 bits, not below zero",
};

/** How to describe messages that are not an object in JSON, by type name. */
const jsonForms: Readonly<Record<string, string>> = {
  "google.protobuf.Duration": 'a duration such as "15s"',
  "google.protobuf.Timestamp": 'a time such as "2026-01-31T12:00:00Z"',
};
