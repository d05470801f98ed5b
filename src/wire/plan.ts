import {
  type DescEnum,
  type DescField,
  type DescMessage,
  getOption,
  ScalarType,
} from "@bufbuild/protobuf";
import { wire, wire_value } from "../gen/payments/v1/options_pb.ts";
import { isSecret } from "../secrets/secret-fields.ts";

/** What a JSON member holds. `number`: a decimal text in the message, a JSON number on the wire. */
export type WireKind =
  | ("string" | "number" | "bool" | "int32" | "int64")
  | ("enum" | "instant" | "message");

/** One field of a message as the REST interface has it. */
export interface WireField {
  readonly field: DescField;
  /** Name of the JSON member. */
  readonly member: string;
  /** What it holds; of a list, each element. */
  readonly kind: WireKind;
  /**
   * Digits of the shortest number that is masked as a card's in this text: 12 in a free text, else
   * 13, since phone numbers and IP addresses have 12. Undefined for what is read exactly, and for
   * secrets, which are stored encrypted.
   */
  readonly maskFromDigits: number | undefined;
  /** The service's own words, which may quote the request. */
  readonly isFreeText: boolean;
}

/**
 * The fields of a message that are part of the JSON body, in the order of the proto, selected by
 * the `(wire)` options there. Uses reflection: for plans that are built once per type.
 */
export function wireFields(desc: DescMessage): WireField[] {
  return desc.fields.filter((field) => !getOption(field, wire).omit).map(wireField);
}

/** Number and wire text of each value of an enum but the unspecified one. */
export function wireTexts(desc: DescEnum): Array<{ number: number; text: string }> {
  return desc.values
    .filter(({ number }) => number !== 0)
    .map((value) => ({
      number: value.number,
      text: getOption(value, wire_value) || value.localName.toLowerCase(),
    }));
}

function wireField(field: DescField): WireField {
  const { number, name, freeText, exact } = getOption(field, wire);
  const kind = wireKind(field, number);
  return {
    field,
    member: name || field.name,
    kind,
    maskFromDigits: kind !== "string" || exact || isSecret(field) ? undefined : freeText ? 12 : 13,
    isFreeText: freeText,
  };
}

function wireKind(field: DescField, number: boolean): WireKind {
  if (field.message?.typeName === "google.protobuf.Timestamp") return "instant";
  if (field.message) return "message";
  if (field.enum) return "enum";
  if (field.fieldKind !== "map") {
    switch (field.scalar) {
      case ScalarType.STRING:
        return number ? "number" : "string";
      case ScalarType.BOOL:
        return "bool";
      case ScalarType.INT32:
        return "int32";
      case ScalarType.INT64:
        return "int64";
    }
  }
  throw new TypeError(`${field.parent.typeName}.${field.name} is of a type that the wire lacks`);
}
