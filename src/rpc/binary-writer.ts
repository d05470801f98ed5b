import {
  type DescField,
  type DescMessage,
  type Message,
  ScalarType,
  toBinary,
} from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";

/** Encodes a message in the binary format. */
export type WriteBinary = (message: Message) => Uint8Array;

/**
 * Compiles a writer of a message type's binary format. It writes the same bytes as `toBinary`, but
 * into a buffer that all messages share, with precomputed tags. protobuf-es writes what this writer
 * does not support (field types that the contract does not use, unknown fields, messages larger
 * than the buffer) and rejects values that do not fit their field, so that errors are the same too.
 * `test/rpc/binary-writer.test.ts` compares the two.
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

/** Appends a value to the buffer. @throws for a value that is not of the type */
type Write<Value = never> = (value: Value) => void;

/** Writes are synchronous, so one shared buffer is enough. */
const memory = Buffer.allocUnsafeSlow(64 * 1024);
let end = 0;

const writers = new WeakMap<DescMessage, Write<Properties>>();

function writerOf(desc: DescMessage): Write<Properties> {
  const known = writers.get(desc);
  if (known) return known;
  // Compiled on first use, since a message type may contain itself.
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
      // Outside proto3, a field that is not set has its default value on the prototype.
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
      return undefined; // Not supported: any value is left to protobuf-es.
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

/** Writes the field's tag and one value. */
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

/** @throws NotCompiled if the buffer has no room for so many more bytes */
function reserve(bytes: number): void {
  if (end + bytes > memory.length) throw new NotCompiled();
}

/** Writes an unsigned 32-bit integer. */
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

/** Writes a value after its length. Reserves one byte for the length, and moves a longer value. */
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

/** Texts of up to this many characters are copied one by one, which is faster than a call. */
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

/** Writes a 64-bit integer, a negative one as its two's complement. */
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
