import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { type Event, EventSchema } from "../gen/payments/v1/event_pb.ts";
import { rememberTrace } from "./trace-of.ts";

/**
 * An event as a store keeps it: its message, and behind it in a field that the message does not have
 * the trace that made it known. Whoever does not know the field reads the event all the same.
 */
export function storedEvent(event: Event, traceparent: string | undefined): Uint8Array {
  const bytes = toBinary(EventSchema, event);
  if (traceparent === undefined) return bytes;
  const trace = new BinaryWriter().tag(traceField, WireType.LengthDelimited).string(traceparent);
  return Buffer.concat([bytes, trace.finish()]);
}

/** Reads it back; `traceOf` tells the trace. */
export function readStoredEvent(bytes: Uint8Array): Event {
  const event = fromBinary(EventSchema, bytes);
  const unknown = event.$unknown;
  if (!unknown) return event;
  delete event.$unknown;
  const trace = unknown.find(({ no }) => no === traceField);
  if (trace) rememberTrace(event, new BinaryReader(trace.data).string());
  const others = unknown.filter((field) => field !== trace);
  if (others.length > 0) event.$unknown = others;
  return event;
}

/** Far beyond the numbers of the message's own fields. */
export const traceField = 15_000;
