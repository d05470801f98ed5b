import { gzipSync } from "node:zlib";
import { create, type DescMessage, toBinary } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { compressedFlag } from "@connectrpc/connect/protocol";
import type { Call } from "../core/core.ts";
import { oncePerEvent } from "../core/once-per-event.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";
import type { Outlet } from "../net/request.ts";
import { isOver, outletOf } from "./answer.ts";
import { jsonWriterOf } from "./json-writer.ts";
import { compressMinBytes } from "./unary-protocols.ts";

type StreamContext = Pick<HandlerContext, "method" | "values" | "requestHeader" | "responseHeader">;

/**
 * Writes events of a stream to its socket in the call that stores them, past Connect's pipeline, which
 * waits for a message meanwhile. All protocols put the same envelope around a message of a stream, so
 * that one is made of each event, and shared by all who watch it. Undefined for what only Connect can
 * write.
 */
export function pushOf(context: StreamContext): Call["push"] {
  const contentType = context.requestHeader.get("content-type") ?? "";
  const compression =
    context.responseHeader.get("grpc-encoding") ??
    context.responseHeader.get("connect-content-encoding");
  if (compression !== null && compression !== "gzip") return undefined;
  const encoder = encoderOf(context.method.output, {
    isJson: /\+json(?:;|$)/.test(contentType),
    isGzip: compression === "gzip",
  });
  return (event) => pushTo(outletOf(context.values), encoder, event);
}

/** Whether the event was taken: an answer that has not begun, or is full, takes none. */
export function pushTo(outlet: Outlet | undefined, encoder: EventEncoder, event: Event): boolean {
  if (!outlet || isOver(outlet) || !outlet.headersSent) return false;
  if (outlet.writableNeedDrain || outlet.writableEnded) return false;
  outlet.write(encoder.event(event));
  return true;
}

/** The messages of a stream as they are sent: those of one event are made once for all. */
export interface EventEncoder {
  readonly event: (event: Event) => Buffer;
  /** A message without an event. */
  readonly heartbeat: Buffer;
}

export interface MessageFormat {
  readonly isJson: boolean;
  readonly isGzip: boolean;
}

/** By method, codec and compression. */
const encoders = new Map<string, EventEncoder>();

/** @param output a message with an `event` */
export function encoderOf(output: DescMessage, { isJson, isGzip }: MessageFormat): EventEncoder {
  const key = `${output.typeName} ${isJson} ${isGzip}`;
  const known = encoders.get(key);
  if (known) return known;
  const writeJson = jsonWriterOf(output);
  const encode = (init: { event?: Event }) => {
    const message = create(output, init as Record<string, unknown>);
    const data = isJson ? Buffer.from(writeJson(message)) : toBinary(output, message);
    return envelope(0, data, isGzip);
  };
  const encoder = { event: oncePerEvent((event) => encode({ event })), heartbeat: encode({}) };
  encoders.set(key, encoder);
  return encoder;
}

/** A message or the end of a stream, compressed where that is asked for and worth it. */
export function envelope(flags: number, data: Uint8Array, isGzip: boolean): Buffer {
  return isGzip && data.byteLength >= compressMinBytes
    ? enveloped(flags | compressedFlag, gzipSync(data))
    : enveloped(flags, data);
}

function enveloped(flags: number, data: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafeSlow(5 + data.byteLength);
  bytes.writeUInt8(flags, 0);
  bytes.writeUInt32BE(data.byteLength, 1);
  bytes.set(data, 5);
  return bytes;
}
