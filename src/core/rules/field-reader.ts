import type { DescField } from "@bufbuild/protobuf";
import { scalarZeroValue } from "@bufbuild/protobuf/reflect";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";

/** A message as an object. */
export type Fields = Readonly<Record<string, unknown>>;

/** Reads one field of a message. */
export interface FieldReader {
  readonly isSet: (message: Fields) => boolean;
  /** The field's value. While it is not set: its zero value, or undefined for a message. */
  readonly value: (message: Fields) => unknown;
}

/** Compiles the reader of a field. @throws Error for maps, and for what proto3 does not have */
export function readerOf(field: DescField): FieldReader {
  const { localName, fieldKind, presence } = field;
  const zero = zeroOf(field);
  if (field.oneof) {
    const oneof = field.oneof.localName;
    const chosen = (message: Fields) => message[oneof] as { case?: string; value?: unknown };
    return {
      isSet: (message) => chosen(message).case === localName,
      value: (message) => (chosen(message).case === localName ? chosen(message).value : zero),
    };
  }
  const value = (message: Fields) => message[localName] ?? zero;
  if (fieldKind === "list") {
    return { value, isSet: (message) => (message[localName] as unknown[]).length > 0 };
  }
  if (fieldKind === "message" || presence === FeatureSet_FieldPresence.EXPLICIT) {
    return { value, isSet: (message) => message[localName] !== undefined };
  }
  if (fieldKind === "map" || presence !== FeatureSet_FieldPresence.IMPLICIT) {
    throw new Error(`not compiled: ${field}`);
  }
  return { value, isSet: (message) => message[localName] !== zero };
}

function zeroOf(field: DescField): unknown {
  if (field.fieldKind === "enum") return field.enum.values[0]?.number;
  return field.fieldKind === "scalar" ? scalarZeroValue(field.scalar, false) : undefined;
}
