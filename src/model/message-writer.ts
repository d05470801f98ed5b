import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { scalarZeroValue } from "@bufbuild/protobuf/reflect";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";

/**
 * Writes a value as JSON text; undefined for one that is left out.
 * @throws for a value that is not of the type
 */
export type Write = (value: unknown) => string | undefined;

/** A field of proto3 as one kind of JSON has it: its name there, and how its values are written. */
export interface WrittenField {
  readonly field: DescField;
  readonly name: string;
  /** Writes the value; of a list, each element. */
  readonly write: Write;
}

/**
 * Compiles a writer of a message type, without the tree of objects that protobuf-es makes first. It
 * leaves out what is not set, and empty lists.
 * @param fieldsOf called once, on first use, since a message type may contain itself
 */
export function messageWriter(
  desc: DescMessage,
  fieldsOf: (desc: DescMessage) => readonly WrittenField[],
): (message: unknown) => string {
  let fields: readonly PlannedField[] | undefined;
  return (given) => {
    const message = given as Readonly<Record<string, unknown>>;
    if (message.$typeName !== desc.typeName) throw new TypeError(`no ${desc.typeName}`);
    fields ??= fieldsOf(desc).map(plannedField);
    let text = "";
    for (const field of fields) {
      let value = message[field.property];
      if (field.oneofCase !== undefined) {
        const chosen = value as { readonly case?: string; readonly value?: unknown } | undefined;
        value = chosen?.case === field.oneofCase ? chosen.value : undefined;
      }
      if (value === undefined || value === field.unset) continue;
      const json = field.write(value);
      if (json === undefined) continue;
      text += text === "" ? field.opening : field.following;
      text += json;
    }
    return text === "" ? "{}" : `${text}}`;
  };
}

interface PlannedField {
  readonly property: string;
  readonly oneofCase: string | undefined;
  /** A value that means unset. */
  readonly unset: unknown;
  /** `{"name":` */
  readonly opening: string;
  /** `,"name":` */
  readonly following: string;
  readonly write: Write;
}

function plannedField({ field, name, write }: WrittenField): PlannedField {
  const { oneof, localName, fieldKind } = field;
  const quoted = JSON.stringify(name);
  return {
    property: oneof?.localName ?? localName,
    oneofCase: oneof && localName,
    unset: unsetOf(field),
    opening: `{${quoted}:`,
    following: `,${quoted}:`,
    write: fieldKind === "list" ? listWriter(write) : write,
  };
}

function unsetOf({ presence, scalar, enum: ofEnum }: DescField): unknown {
  if (presence !== FeatureSet_FieldPresence.IMPLICIT) return undefined;
  return ofEnum ? 0 : scalar && scalarZeroValue(scalar, false);
}

function listWriter(write: Write): Write {
  return (value) => {
    const list = value as readonly unknown[];
    return list.length === 0 ? undefined : `[${list.map(write).join(",")}]`;
  };
}

/** Writes a string, in every kind of JSON. */
export function textWriter(value: unknown): string {
  if (typeof value !== "string") throw new TypeError("no text");
  // Most texts need no escaping, and the test is cheaper than a call of `JSON.stringify`.
  return needsEscape.test(value) ? JSON.stringify(value) : `"${value}"`;
}

/** Includes surrogates, since `JSON.stringify` escapes lone ones. */
const needsEscape = /["\\\u0000-\u001f\ud800-\udfff]/;

/** Writes a boolean, in every kind of JSON. */
export function boolWriter(value: unknown): string {
  if (typeof value !== "boolean") throw new TypeError("no boolean");
  return value ? "true" : "false";
}
