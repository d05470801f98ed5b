import {
  type DescField,
  type DescMessage,
  type Message,
  ScalarType,
  toBinary,
} from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";

/** A message in the binary format. */
export type WriteBinary = (message: Message) => Uint8Array;

/**
 * Compiles the writer of a message's binary format: byte for byte what `toBinary` writes, into memory
 * that all messages share, with tags that are made beforehand. What it does not know (fields that the
 * contract has not, unknown fields, a message larger than that memory) and what is no value of its
 * field it leaves to protobuf-es, so that errors are its own too. `test/rpc/binary-writer.test.ts`
 * compares the two.
 */
export function binaryWriterOf(desc: DescMessage): WriteBinary {
  const write = writerOf(desc);
  return (message) => {
    try {
      end = 0;
      write(message as Properties);
      const bytes = Buffer.allocUnsafe(end);
      memory.copy(bytes, 0, 0, end);
      return bytes;
    } catch {
      return toBinary(desc, message);
    }
  };
}

type Properties = Message & Readonly<Record<string, unknown>>;

/** Writes a value behind what is there. @throws for one that is not of the type */
type Write<Value = never> = (value: Value) => void;

/** Nothing that is written waits for anything, so one is enough. */
const memory = Buffer.allocUnsafeSlow(64 * 1024);
let end = 0;

const writers = new WeakMap<DescMessage, Write<Properties>>();

function writerOf(desc: DescMessage): Write<Properties> {
  const known = writers.get(desc);
  if (known) return known;
  // Filled when it is first used, since a message may hold itself.
  let fields: readonly Write<Properties>[] | undefined;
  const write = (message: Properties) => {
    if (message.$typeName !== desc.typeName || message.$unknown) throw new NotCompiled();
    fields ??= desc.fields.toSorted((a, b) => a.number - b.number).map(fieldWriter);
    for (let at = 0; at < fields.length; at++) (fields[at] as Write<Properties>)(message);
  };
  writers.set(desc, write);
  return write;
}

class NotCompiled extends Error {}

function fieldWriter(field: DescField): Write<Properties> {
  const { localName } = field;
  if (field.fieldKind === "list") return listWriter(field);
  const write = taggedWriter(field) as Write<unknown>;
  if (field.oneof) {
    const oneof = field.oneof.localName;
    return (message) => {
      const chosen = message[oneof] as { readonly case?: string; readonly value?: unknown };
      if (chosen.case === localName) write(chosen.value);
    };
  }
  if (field.presence !== FeatureSet_FieldPresence.IMPLICIT) {
    const isRequired = field.presence === FeatureSet_FieldPresence.LEGACY_REQUIRED;
    return (message) => {
      const value = message[localName];
      // Outside proto3 what is not set has its default, on the prototype.
      if (value !== undefined && Object.hasOwn(message, localName)) write(value);
      else if (isRequired) throw new NotCompiled();
    };
  }
  const zero = zeroOf(field);
  return (message) => {
    const value = message[localName];
    if (value !== zero) write(value);
  };
}

function zeroOf(field: DescField): unknown {
  if (field.enum) return field.enum.values[0]?.number;
  switch (field.scalar) {
    case ScalarType.STRING:
      return "";
    case ScalarType.BOOL:
      return false;
    case ScalarType.INT64:
    case ScalarType.UINT64:
      return 0n;
    case ScalarType.INT32:
    case ScalarType.UINT32:
      return 0;
    default:
      return undefined; // What of it is set, protobuf-es is left to tell.
  }
}

function listWriter(field: DescField & { fieldKind: "list" }): Write<Properties> {
  const { localName } = field;
  if (!field.packed) {
    const write = taggedWriter(field) as Write<unknown>;
    return (message) => {
      const items = message[localName] as readonly unknown[];
      for (let at = 0; at < items.length; at++) write(items[at]);
    };
  }
  const tag = tagOf(field, WireType.LengthDelimited);
  const write = scalarWriter(field)[1] as Write<unknown>;
  const writeAll = (items: readonly unknown[]) => items.forEach(write);
  return (message) => {
    const items = message[localName] as readonly unknown[];
    if (items.length === 0) return;
    writeVarint(tag);
    writeDelimited(writeAll, items);
  };
}

/** Writes one value with the field's tag before it. */
function taggedWriter(field: DescField): Write {
  if (field.message) {
    if (field.fieldKind === "map" || field.delimitedEncoding) return refuse;
    const tag = tagOf(field, WireType.LengthDelimited);
    const write = writerOf(field.message);
    return (value: Properties) => {
      writeVarint(tag);
      writeDelimited(write, value);
    };
  }
  const [wireType, write] = scalarWriter(field);
  const tag = tagOf(field, wireType);
  return (value: never) => {
    writeVarint(tag);
    write(value);
  };
}

function tagOf({ number }: DescField, wireType: WireType): number {
  return ((number << 3) | wireType) >>> 0;
}

function scalarWriter(field: DescField): [WireType, Write] {
  if (field.enum) return [WireType.Varint, writeInt32];
  const type = field.fieldKind === "map" ? undefined : field.scalar;
  switch (type) {
    case ScalarType.STRING:
      return [WireType.LengthDelimited, writeText];
    case ScalarType.BOOL:
      return [WireType.Varint, writeBool];
    case ScalarType.INT32:
      return [WireType.Varint, writeInt32];
    case ScalarType.UINT32:
      return [WireType.Varint, writeUint32];
    case ScalarType.INT64:
      return [WireType.Varint, writeInt64];
    case ScalarType.UINT64:
      return [WireType.Varint, writeUint64];
    default:
      return [WireType.Varint, refuse];
  }
}

function refuse(): never {
  throw new NotCompiled();
}

/** Makes sure that so many bytes fit behind what is there. */
function reserve(bytes: number): void {
  if (end + bytes > memory.length) throw new NotCompiled();
}

/** An unsigned integer of 32 bits. */
function writeVarint(value: number): void {
  reserve(5);
  let left = value;
  while (left > 0x7f) {
    memory[end++] = (left & 0x7f) | 0x80;
    left >>>= 7;
  }
  memory[end++] = left;
}

function varintBytes(value: number): number {
  if (value < 2 ** 7) return 1;
  if (value < 2 ** 14) return 2;
  return value < 2 ** 21 ? 3 : 4;
}

/** What `write` writes, behind its length: room for a short one is left beforehand. */
function writeDelimited<Value>(write: Write<Value>, value: Value): void {
  reserve(1);
  const start = ++end;
  write(value);
  const length = end - start;
  if (length < 0x80) {
    memory[start - 1] = length;
    return;
  }
  const more = varintBytes(length) - 1;
  reserve(more);
  memory.copyWithin(start + more, start, end);
  end = start - 1;
  writeVarint(length);
  end += length;
}

/** Texts of so many characters are copied one by one: quicker than to call for it. */
const maxShort = 127;

function writeText(value: unknown): void {
  if (typeof value !== "string") throw new NotCompiled();
  const { length } = value;
  if (length <= maxShort) {
    reserve(length + 1);
    let to = end;
    memory[to++] = length;
    let at = 0;
    for (; at < length; at++) {
      const code = value.charCodeAt(at);
      if (code > 0x7f) break;
      memory[to++] = code;
    }
    if (at === length) {
      end = to;
      return;
    }
  }
  const bytes = Buffer.byteLength(value);
  writeVarint(bytes);
  reserve(bytes);
  end += memory.write(value, end, bytes, "utf8");
}

function writeBool(value: unknown): void {
  if (typeof value !== "boolean") throw new NotCompiled();
  reserve(1);
  memory[end++] = value ? 1 : 0;
}

function writeInt32(value: unknown): void {
  if (typeof value !== "number" || (value | 0) !== value) throw new NotCompiled();
  if (value >= 0) writeVarint(value);
  else writeWide(BigInt(value));
}

function writeUint32(value: unknown): void {
  if (typeof value !== "number" || value >>> 0 !== value) throw new NotCompiled();
  writeVarint(value);
}

function writeInt64(value: unknown): void {
  if (typeof value !== "bigint" || BigInt.asIntN(64, value) !== value) throw new NotCompiled();
  writeWide(value);
}

function writeUint64(value: unknown): void {
  if (typeof value !== "bigint" || BigInt.asUintN(64, value) !== value) throw new NotCompiled();
  writeWide(value);
}

/** An integer of 64 bits; negative ones as their two's complement. */
function writeWide(value: bigint): void {
  if (value >= 0n && value <= 0xffff_ffffn) {
    writeVarint(Number(value));
    return;
  }
  reserve(10);
  let left = BigInt.asUintN(64, value);
  while (left > 0x7fn) {
    memory[end++] = Number(left & 0x7fn) | 0x80;
    left >>= 7n;
  }
  memory[end++] = Number(left);
}
