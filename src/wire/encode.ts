import type { DescMessage } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { oncePer } from "../collections/once-per.ts";
import type { Properties } from "./decode.ts";
import { jsonNumber } from "./number.ts";
import { type WireField, type WireType, wireFields, wireTexts } from "./plan.ts";
import { writeInstant } from "./time.ts";

/** The JSON text of a message. @throws RangeError naming the field that the wire cannot carry. */
export function writeMessage(desc: DescMessage, message: Properties): string {
  const fields = planOf(desc);
  let text = "";
  for (const field of fields) {
    const value = fieldValue(message, field);
    if (value === undefined || value === null || value === field.unset) continue;
    const json = field.write(value);
    if (json === undefined) continue;
    text += text === "" ? field.opening : field.following;
    text += json;
  }
  return text === "" ? "{}" : `${text}}`;
}

/** Writes a value as JSON; undefined for one that is not written (an empty list, an enum's 0). */
type Write = (value: unknown) => string | undefined;

interface PlannedField {
  readonly property: string;
  readonly oneofCase: string | undefined;
  /** A value that means unset, and is not written. */
  readonly unset: unknown;
  /** `{"member":` */
  readonly opening: string;
  /** `,"member":` */
  readonly following: string;
  readonly write: Write;
}

const planOf = oncePer((desc: DescMessage): readonly PlannedField[] =>
  wireFields(desc).map((field) => plannedField(desc, field)),
);

function plannedField(desc: DescMessage, field: WireField): PlannedField {
  const name = JSON.stringify(field.member);
  const write = writer(field.type, `${desc.typeName}.${field.member}`);
  return {
    property: field.property,
    oneofCase: field.oneofCase,
    unset: field.unset,
    opening: `{${name}:`,
    following: `,${name}:`,
    write: field.list ? listWriter(write) : write,
  };
}

function fieldValue(message: Properties, field: PlannedField): unknown {
  const value = message[field.property];
  if (field.oneofCase === undefined) return value;
  const chosen = value as { case?: string; value?: unknown } | undefined;
  return chosen?.case === field.oneofCase ? chosen.value : undefined;
}

function writer(type: WireType, name: string): Write {
  switch (type.kind) {
    case "string":
      return (value) => quoted(value as string);
    case "number":
      return (value) => jsonNumber(value as string) ?? refuse(name, "a decimal number");
    case "bool":
      return (value) => (value === true ? "true" : "false");
    case "int32":
      return (value) => (Number.isInteger(value) ? String(value) : refuse(name, "an integer"));
    case "int64":
      return (value) => (typeof value === "bigint" ? String(value) : refuse(name, "an integer"));
    case "instant":
      return (value) => {
        const text = writeInstant(value as Timestamp);
        return text === undefined ? refuse(name, "an instant of the years 1 to 9999") : `"${text}"`;
      };
    case "enum": {
      const texts = new Map<unknown, string | undefined>([[0, undefined]]);
      for (const { number, text } of wireTexts(type.desc)) texts.set(number, JSON.stringify(text));
      return (value) => (texts.has(value) ? texts.get(value) : refuse(name, "a known value"));
    }
    case "message":
      return (value) => writeMessage(type.desc, value as Properties);
  }
}

function listWriter(write: Write): Write {
  return (value) => {
    const list = value as unknown[];
    return list.length === 0 ? undefined : `[${list.map(write).join(",")}]`;
  };
}

/** Most texts need no escaping: testing is cheaper than calling `JSON.stringify`. */
function quoted(text: string): string {
  return needsEscape.test(text) ? JSON.stringify(text) : `"${text}"`;
}

/** Includes surrogates, since `JSON.stringify` writes lone ones as escapes. */
const needsEscape = /["\\\u0000-\u001f\ud800-\udfff]/;

function refuse(name: string, expected: string): never {
  throw new RangeError(`${name} does not hold ${expected}`);
}
