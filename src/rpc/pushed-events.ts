import { create, type DescMessage, toBinary } from "@bufbuild/protobuf";
import type { Compression } from "@connectrpc/connect/protocol";
import { oncePerEvent } from "../core/once-per-event.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";
import { jsonWriterOf } from "./json-writer.ts";
import { envelope } from "./protocols.ts";

/**
 * Encodes the messages of a stream: all protocols put the same envelope around them, so each event
 * is encoded once and shared by all its watchers.
 */
export interface EventEncoder {
  readonly event: (event: Event) => Uint8Array;
  /** A message without an event. */
  readonly heartbeat: Uint8Array;
}

/** Encoders by output message, codec and compression. */
const encoders = new Map<string, EventEncoder>();

/** @param output a message type with an `event` field */
export function encoderOf(
  output: DescMessage,
  isJson: boolean,
  compression: Compression | null,
): EventEncoder {
  const key = `${output.typeName} ${isJson} ${compression?.name}`;
  const known = encoders.get(key);
  if (known) return known;
  const writeJson = jsonWriterOf(output);
  const encode = (init: { event?: Event }) => {
    const message = create(output, init as Record<string, unknown>);
    const data = isJson ? Buffer.from(writeJson(message)) : toBinary(output, message);
    return envelope({ flags: 0, data }, compression);
  };
  const encoder = { event: oncePerEvent((event) => encode({ event })), heartbeat: encode({}) };
  encoders.set(key, encoder);
  return encoder;
}
