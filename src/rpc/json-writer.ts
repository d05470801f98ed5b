import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type Message,
  ScalarType,
  toJson,
} from "@bufbuild/protobuf";
import { type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { oncePer } from "../collections/once-per.ts";
import { writeInstant } from "../model/instant.ts";
import { boolWriter, messageWriter, textWriter, type Write } from "../model/message-writer.ts";

/**
 * Compiles a writer of a message type's proto JSON. It writes the same text as `toJsonString`, and
 * throws for a value that does not fit its field. protobuf-es writes what no answer of the contract
 * has (maps, bytes, floating-point numbers, messages with a JSON form of their own).
 * `test/rpc/json-writer.test.ts` compares the two.
 */
export const jsonWriterOf = oncePer((desc: DescMessage): ((message: unknown) => string) => {
  if (desc.typeName === TimestampSchema.typeName) return timestampText;
  const isOurs = !desc.typeName.startsWith("google.protobuf.");
  if (isOurs && desc.fields.every(isCompiled)) return messageWriter(desc, writtenFields);
  return (message) => JSON.stringify(toJson(desc, message as Message));
});

function isCompiled({ fieldKind, scalar }: DescField): boolean {
  return fieldKind !== "map" && (scalar === undefined || writersOf.has(scalar));
}

function writtenFields({ fields }: DescMessage) {
  const inOrder = fields.toSorted((a, b) => a.number - b.number);
  return inOrder.map((field) => ({ field, name: field.jsonName, write: valueWriter(field) }));
}

function valueWriter(field: DescField): Write {
  if (field.message) return jsonWriterOf(field.message);
  if (field.enum) return enumWriter(field.enum);
  return writersOf.get(field.scalar as ScalarType) as Write;
}

const writersOf: ReadonlyMap<ScalarType, Write> = new Map([
  [ScalarType.STRING, textWriter],
  [ScalarType.BOOL, boolWriter],
  [ScalarType.INT32, int32Writer],
  [ScalarType.INT64, int64Writer],
]);

function int32Writer(value: unknown): string {
  if (!Number.isInteger(value)) throw new TypeError("no integer");
  return String(value);
}

function int64Writer(value: unknown): string {
  if (typeof value !== "bigint") throw new TypeError("no 64-bit integer");
  return `"${value}"`;
}

/** An unknown value of an open enum is written as its number. */
function enumWriter({ value: values, typeName }: DescEnum): Write {
  const names = new Map(
    Object.values(values).map(({ number, jsonName }) => [number, JSON.stringify(jsonName)]),
  );
  return (value) => {
    if (typeof value !== "number") throw new TypeError(`no ${typeName}`);
    return names.get(value) ?? JSON.stringify(value);
  };
}

function timestampText(value: unknown): string {
  const text = writeInstant(value as Timestamp);
  if (text === undefined) throw new RangeError("no instant");
  return `"${text}"`;
}
