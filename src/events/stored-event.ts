import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { type Event, EventSchema } from "../gen/payments/v1/event_pb.ts";
import type { Seal } from "../secrets/seal.ts";
import { putSecrets, splitSecrets } from "../secrets/secret-fields.ts";
import { rememberTrace } from "./trace-of.ts";

/**
 * An event as it is stored: its bytes in protobuf without its secret fields and, where it has some,
 * before them a field more, which holds them sealed. They open only together with the event that
 * they were taken from. Behind it stands, in a field that the message does not have either, the trace
 * that made it known (`traceOf` tells it). Whoever does not know these fields reads the event all the
 * same.
 */
export function writeEvent(seal: Seal, event: Event, traceparent?: string): Buffer {
  const { open: without, secrets } = splitSecrets(EventSchema, event);
  const message = toBinary(EventSchema, without);
  const open = Buffer.concat([message, ...(traceparent ? [traceOnWire(traceparent)] : [])]);
  if (!secrets) return open;
  const sealed = seal.close(toBinary(EventSchema, secrets), open);
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
    return { event: withTrace(fromBinary(EventSchema, bytes)), locked: false };
  }
  const sealed = reader.bytes();
  const open = bytes.subarray(reader.pos);
  const event = withTrace(fromBinary(EventSchema, open));
  const secrets = seal.open(sealed, open);
  if (secrets) putSecrets(EventSchema, event, fromBinary(EventSchema, secrets));
  return { event, locked: !secrets };
}

/**
 * Of the numbers that no field of a contract may have (19000 to 19999). Who does not know it skips it.
 */
const sealedField = 19_000;

/** Far beyond the numbers of the message's own fields. */
export const traceField = 15_000;

function traceOnWire(traceparent: string): Uint8Array {
  return new BinaryWriter().tag(traceField, WireType.LengthDelimited).string(traceparent).finish();
}

/** What stood behind the message is remembered beside it, and no part of it. */
function withTrace(event: Event): Event {
  const unknown = event.$unknown;
  if (!unknown) return event;
  delete event.$unknown;
  const trace = unknown.find(({ no }) => no === traceField);
  if (trace) rememberTrace(event, new BinaryReader(trace.data).string());
  const others = unknown.filter((field) => field !== trace);
  if (others.length > 0) event.$unknown = others;
  return event;
}
