import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { type Event, EventSchema } from "../gen/payments/v1/event_pb.ts";
import type { Seal } from "../seal/seal.ts";
import { putSecrets, takeSecrets } from "../secret-fields.ts";

/**
 * An event as it is stored: its bytes in protobuf without its secret fields and, where it has some,
 * before them a field more, which holds them sealed. They open only together with the event that
 * they were taken from.
 */
export function writeEvent(seal: Seal, event: Event): Buffer {
  const taken = takeSecrets(EventSchema, event);
  const open = toBinary(EventSchema, event);
  if (!taken) return Buffer.from(open.buffer, open.byteOffset, open.byteLength);
  putSecrets(EventSchema, event, taken);
  const sealed = seal.close(toBinary(EventSchema, taken), open);
  const field = new BinaryWriter().tag(sealedField, WireType.LengthDelimited).bytes(sealed);
  return Buffer.concat([field.finish(), open]);
}

export interface StoredEvent {
  readonly event: Event;
  /** Its secret fields could not be opened, and are absent. */
  readonly locked: boolean;
}

export function readEvent(seal: Seal, bytes: Uint8Array): StoredEvent {
  const reader = new BinaryReader(bytes);
  const [number, type] = bytes.length > 0 ? reader.tag() : [];
  if (number !== sealedField || type !== WireType.LengthDelimited) {
    return { event: fromBinary(EventSchema, bytes), locked: false };
  }
  const sealed = reader.bytes();
  const open = bytes.subarray(reader.pos);
  const event = fromBinary(EventSchema, open);
  const secrets = seal.open(sealed, open);
  if (secrets) putSecrets(EventSchema, event, fromBinary(EventSchema, secrets));
  return { event, locked: !secrets };
}

/**
 * Of the numbers that no field of a contract may have (19000 to 19999). Who does not know it skips it.
 */
const sealedField = 19_000;
