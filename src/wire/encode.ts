import type { DescEnum, DescMessage } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { oncePer } from "../collections/once-per.ts";
import { writeInstant } from "../model/instant.ts";
import { boolWriter, messageWriter, textWriter, type Write } from "../model/message-writer.ts";
import { jsonNumber } from "./number.ts";
import { type WireField, wireFields, wireTexts } from "./plan.ts";

/**
 * Compiles the writer of a message's JSON text. An enum's unspecified value is not written.
 * @throws RangeError naming the field that the wire cannot carry, when it writes
 */
export const writerOf = oncePer((desc: DescMessage) =>
  messageWriter(desc, () =>
    wireFields(desc).map((planned) => {
      const { field, member: name } = planned;
      return { field, name, write: writer(planned, `${desc.typeName}.${name}`) };
    }),
  ),
);

function writer({ field, kind }: WireField, name: string): Write {
  switch (kind) {
    case "string":
      return textWriter;
    case "number":
      return (value) => jsonNumber(value as string) ?? refuse(name, "a decimal number");
    case "bool":
      return boolWriter;
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
      for (const { number, text } of wireTexts(field.enum as DescEnum))
        texts.set(number, JSON.stringify(text));
      return (value) => (texts.has(value) ? texts.get(value) : refuse(name, "a known value"));
    }
    case "message":
      return writerOf(field.message as DescMessage);
  }
}

function refuse(name: string, expected: string): never {
  throw new RangeError(`${name} does not hold ${expected}`);
}
