import type { DescMessage } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { oncePer } from "../collections/once-per.ts";
import { type Excess, tooMany } from "../net/bounded-json.ts";
import { intakeLimits } from "../net/intake-limits.ts";

/**
 * Whether a message of a type would hold more values than the limit once it is decoded: counts
 * fields, list elements and unknown fields on the wire without making any. Its own cost is linear,
 * and none for a message so short that it cannot hold more. Passes bytes that are no message: the
 * decoder words that error, also for groups that are too deep. No request type contains itself.
 */
export function excessOfBinary(type: DescMessage, bytes: Uint8Array): Excess | undefined {
  const { values } = intakeLimits;
  // A value takes at least one byte, as an element of a packed list.
  if (bytes.length <= values) return undefined;
  try {
    const count = valuesIn(type, new BinaryReader(bytes), bytes.length, values);
    return count > values ? tooMany(values) : undefined;
  } catch {
    return undefined;
  }
}

/** Counts the values up to `end`, or until there are more than `max`. */
function valuesIn(type: DescMessage, reader: BinaryReader, end: number, max: number): number {
  const fields = fieldsOf(type);
  let count = 0;
  while (reader.pos < end && count <= max) {
    const [number, wireType] = reader.tag();
    count += 1;
    // What is in a group counts as if it were beside it.
    if (wireType === WireType.StartGroup || wireType === WireType.EndGroup) continue;
    const field = wireType === WireType.LengthDelimited ? fields.get(number) : undefined;
    const isPacked = field?.fieldKind === "list" && field.packed;
    if (!field?.message && !isPacked) {
      reader.skip(wireType);
      continue;
    }
    const next = reader.uint32() + reader.pos;
    if (field.message) count += valuesIn(field.message, reader, Math.min(next, end), max - count);
    else count += next - reader.pos;
    reader.pos = next;
  }
  return count;
}

const fieldsOf = oncePer(
  (type: DescMessage) => new Map(type.fields.map((field) => [field.number, field])),
);
