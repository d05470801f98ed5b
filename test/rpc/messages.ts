import {
  create,
  createFileRegistry,
  type DescField,
  type DescMessage,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { services } from "../../src/rpc/services/routes.ts";

const texts = [
  "",
  "a",
  'q"\\',
  "\u0000\n\u001f",
  "\u007f",
  "über 💶",
  "\ud800",
  "\udc00x",
  "\u2028",
];
const doubles = [0, -0, 1.5, 1e21, -1e-7, Number.NaN, Infinity, -Infinity, 150.75];
const integers = [0, 1, -1, 2 ** 31 - 1, -(2 ** 31)];
const bigs = [0n, 1n, -1n, 2n ** 63n - 1n, -(2n ** 63n)];
const seconds = [0n, 1n, 951_782_400n, 1_732_320_000n, 253_402_300_799n, -1n, -62_135_596_800n];
const nanos = [0, 1, 1_000, 120_000_000, 999_999_999];

/** A random message: each field has a random value of its type, or is unset. */
export function messageOf(desc: DescMessage, below: (n: number) => number, depth = 0): Message {
  const one = <T>(items: readonly T[]) => items[below(items.length)] as T;
  if (desc.typeName === "google.protobuf.Timestamp") {
    return create(desc, { seconds: one(seconds), nanos: one(nanos) } as never);
  }
  const scalar = (type: ScalarType): unknown => {
    switch (type) {
      case ScalarType.STRING:
        return one(texts);
      case ScalarType.BOOL:
        return below(2) === 0;
      case ScalarType.BYTES:
        return new Uint8Array(below(4)).fill(below(256));
      case ScalarType.DOUBLE:
      case ScalarType.FLOAT:
        return one(doubles);
      case ScalarType.INT64:
      case ScalarType.SINT64:
      case ScalarType.SFIXED64:
        return one(bigs);
      case ScalarType.UINT64:
      case ScalarType.FIXED64:
        return one([0n, 1n, 2n ** 64n - 1n]);
      case ScalarType.UINT32:
      case ScalarType.FIXED32:
        return one([0, 1, 2 ** 32 - 1]);
      default:
        return one(integers);
    }
  };
  const value = (field: DescField): unknown => {
    if (field.message) return messageOf(field.message, below, depth + 1);
    // An open enum may hold a number that it does not name.
    if (field.enum) return one([...field.enum.values.map(({ number }) => number), 999]);
    return scalar(field.scalar as ScalarType);
  };
  const init: Record<string, unknown> = {};
  for (const field of desc.fields) {
    if (below(3) === 0 || (field.message && depth > 2)) continue;
    if (field.fieldKind === "list") {
      init[field.localName] = Array.from({ length: below(3) }, () => value(field));
    } else if (field.fieldKind === "map") {
      init[field.localName] = { a: value(field), __proto__x: value(field) };
    } else if (field.oneof) {
      init[field.oneof.localName] = { case: field.localName, value: value(field) };
    } else {
      init[field.localName] = value(field);
    }
  }
  return create(desc, init as never);
}

/**
 * A message type with a field of every kind, or of the kinds that match `names`: singular, in a
 * list, in a oneof and optional.
 */
export function everyKind(names = /./): DescMessage {
  const { OPTIONAL, REPEATED } = FieldDescriptorProto_Label;
  const { MESSAGE, ENUM, GROUP } = FieldDescriptorProto_Type;
  const types = Object.values(FieldDescriptorProto_Type).filter(
    (type): type is FieldDescriptorProto_Type =>
      typeof type === "number" &&
      type !== GROUP &&
      names.test(FieldDescriptorProto_Type[type].toLowerCase()),
  );
  const typeName = (type: FieldDescriptorProto_Type) =>
    type === MESSAGE ? ".test.Every" : type === ENUM ? ".test.Kind" : "";
  let number = 0;
  const field = (name: string, type: FieldDescriptorProto_Type, more: object) => ({
    ...{ name, number: ++number, label: OPTIONAL, type, typeName: typeName(type) },
    ...{ jsonName: name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()) },
    ...more,
  });
  const ofTypes = types.map((type) => ({
    type,
    name: FieldDescriptorProto_Type[type].toLowerCase(),
  }));
  const oneofDecl = [{ name: "one" }, ...ofTypes.map(({ name }) => ({ name: `_opt_${name}` }))];
  const file = create(FileDescriptorProtoSchema, {
    ...{ name: "every.proto", package: "test", syntax: "proto3" },
    messageType: [
      {
        name: "Every",
        field: [
          ...ofTypes.map(({ name, type }) => field(name, type, {})),
          ...ofTypes.map(({ name, type }) => field(`many_${name}`, type, { label: REPEATED })),
          ...ofTypes.map(({ name, type }) => field(`one_${name}`, type, { oneofIndex: 0 })),
          ...ofTypes.map(({ name, type }, at) =>
            field(`opt_${name}`, type, { oneofIndex: at + 1, proto3Optional: true }),
          ),
        ],
        oneofDecl,
      },
    ],
    enumType: [
      {
        name: "Kind",
        value: [
          { name: "KIND_UNSPECIFIED", number: 0 },
          { name: "KIND_A", number: 7 },
        ],
      },
    ],
  });
  const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: [file] }));
  return registry.getMessage("test.Every") as DescMessage;
}

/** All request and response types of the contract. */
export const contract = services.flatMap(({ methods }) =>
  methods.flatMap(({ input, output }) => [input, output]),
);
