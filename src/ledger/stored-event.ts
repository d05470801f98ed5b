import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { type Event, EventSchema } from "../gen/payments/v1/event_pb.ts";
import { joined, type Seal } from "../secrets/seal.ts";
import { putSecrets, splitSecrets } from "../secrets/secret-fields.ts";

/**
 * Encodes an event for storage: its protobuf bytes without the secret fields. If it has secrets, a
 * field before them holds these encrypted; they decrypt only together with the rest of the event.
 * If it is traced, a field after them holds the `traceparent` (`traceOf` returns it). The message
 * defines neither field, so readers that do not know them still read the event. Without a seal the
 * event is encoded whole, for a store that is this process's memory.
 */
export function writeEvent(seal: Seal | undefined, event: Event, traceparent?: string): Buffer {
  const { open: without, secrets } = seal
    ? splitSecrets(EventSchema, event)
    : { open: event, secrets: undefined };
  const message = toBinary(EventSchema, without);
  const field = (no: number) => new BinaryWriter().tag(no, WireType.LengthDelimited);
  const open = traceparent
    ? joined([message, field(traceField).string(traceparent).finish()])
    : Buffer.from(message.buffer, message.byteOffset, message.byteLength);
  if (!secrets || !seal) return open;
  const sealed = seal.close(toBinary(EventSchema, secrets), open);
  return joined([field(sealedField).uint32(sealed.length).finish(), sealed, open]);
}

/** @returns `locked` if its secret fields could not be decrypted, and are absent */
export function readEvent(seal: Seal | undefined, bytes: Uint8Array) {
  const reader = new BinaryReader(bytes);
  const [number, type] = bytes.length > 0 ? reader.tag() : [];
  if (number !== sealedField || type !== WireType.LengthDelimited) {
    return { event: withTrace(fromBinary(EventSchema, bytes)), locked: false };
  }
  const sealed = reader.bytes();
  const open = bytes.subarray(reader.pos);
  const event = withTrace(fromBinary(EventSchema, open));
  const secrets = seal?.open(sealed, open);
  if (secrets) putSecrets(EventSchema, event, fromBinary(EventSchema, secrets));
  return { event, locked: !secrets };
}

/**
 * One of the field numbers that protobuf reserves (19000 to 19999), so no contract uses it. Readers
 * that do not know it skip it.
 */
const sealedField = 19_000;

/** Far above the numbers of the message's own fields. */
export const traceField = 15_000;

/** Moves the trace out of the message's unknown fields, so that it is no part of the event. */
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

/**
 * The `traceparent` of the span that appended an event; spans that deliver the event link to it. It
 * is kept outside the message, so that no client receives it.
 */
export function traceOf(event: Event): string | undefined {
  return traces.get(event);
}

export function rememberTrace(event: Event, traceparent: string | undefined): void {
  if (traceparent !== undefined) traces.set(event, traceparent);
}

const traces = new WeakMap<Event, string>();
