import type { DescMessage } from "@bufbuild/protobuf";
import { oncePer } from "../collections/once-per.ts";
import { type Excess, tooDeep, tooMany } from "../net/bounded-json.ts";
import { intakeLimits } from "../net/intake-limits.ts";

/**
 * Whether a message of a type would hold more than the limits once it is decoded: counts fields,
 * list elements and unknown fields on the wire without making any. Its own cost is linear, and none
 * for a message so short that it cannot hold more. Ends quietly at bytes that are no message: the
 * decoder words that error.
 */
export function excessOfBinary(type: DescMessage, bytes: Uint8Array): Excess | undefined {
  // An element of a packed list takes one byte.
  const { values } = intakeLimits;
  if (bytes.length <= Math.min(values, shortBytes)) return undefined;
  return new Scan(bytes, values).message(planOf(type), bytes.length, 0);
}

/** A message of this length is read at once, however deep it is. */
const shortBytes = 1_000;

/** What a field with a length holds: a message, packed numbers, or bytes. */
type Content = Plan | "packed";
interface Plan {
  readonly fields: ReadonlyMap<number, () => Content>;
}

const planOf = oncePer((type: DescMessage): Plan => {
  const fields = new Map<number, () => Content>();
  for (const field of type.fields) {
    const { message } = field;
    if (message) fields.set(field.number, () => planOf(message));
    else if (field.fieldKind === "list" && field.packed) fields.set(field.number, () => "packed");
    else if (field.fieldKind === "map") fields.set(field.number, () => noFields);
  }
  return { fields };
});

/** An entry of a map: its key and value count as one more value each. */
const noFields: Plan = { fields: new Map() };

class Scan {
  readonly #bytes: Uint8Array;
  readonly #max: number;
  #at = 0;
  #count = 0;

  constructor(bytes: Uint8Array, max: number) {
    this.#bytes = bytes;
    this.#max = max;
  }

  message({ fields }: Plan, end: number, depth: number): Excess | undefined {
    if (depth > intakeLimits.depth) return tooDeep();
    let groups = 0;
    while (this.#at < end) {
      const tag = this.#varint();
      this.#count += 1;
      if (this.#count > this.#max) return tooMany(this.#max);
      switch (tag & 7) {
        case 0:
          this.#varint();
          break;
        case 1:
          this.#at += 8;
          break;
        case 2: {
          const length = this.#varint();
          const next = this.#at + length;
          if (next > end) return undefined;
          const content = fields.get(tag >>> 3)?.();
          if (content === "packed") {
            this.#count += this.#packed(next);
            if (this.#count > this.#max) return tooMany(this.#max);
          } else if (content) {
            const excess = this.message(content, next, depth + 1);
            if (excess) return excess;
          }
          this.#at = next;
          break;
        }
        case 3:
          groups += 1;
          if (depth + groups > intakeLimits.depth) return tooDeep();
          break;
        case 4:
          groups -= 1;
          break;
        case 5:
          this.#at += 4;
          break;
        default:
          return undefined;
      }
    }
    return undefined;
  }

  /** Elements of a packed list of varints; of fixed width at least as many are assumed. */
  #packed(end: number): number {
    let count = 0;
    for (let at = this.#at; at < end; at++) if ((this.#bytes[at] as number) < 0x80) count += 1;
    return count;
  }

  #varint(): number {
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.#bytes[this.#at++] ?? 0;
      if (shift < 28) value |= (byte & 0x7f) << shift;
      else if (shift === 28) value = (value | ((byte & 0x0f) << 28)) >>> 0;
      if (byte < 0x80) break;
    }
    return value >>> 0;
  }
}
