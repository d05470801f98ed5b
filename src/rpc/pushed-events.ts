import { create, type DescMessage, toBinary } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import type { Call } from "../core/core.ts";
import { oncePerEvent } from "../core/once-per-event.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";
import type { Outlet } from "../net/request-head.ts";
import { isOver, outletOf } from "./answer.ts";
import { jsonWriterOf } from "./json-writer.ts";
import { envelope } from "./protocols.ts";

type StreamContext = Pick<HandlerContext, "method" | "values" | "requestHeader" | "responseHeader">;

/** Writes messages of a stream past Connect's pipeline, which waits for its next message. */
interface Writer {
  /** Writes an event in the call that stores it. */
  readonly push: NonNullable<Call["push"]>;
  /** Writes a message without an event, if there is room for it. */
  readonly beat: () => void;
}

/**
 * All protocols put the same envelope around a stream's messages, so each event is encoded once and
 * shared by all its watchers. In any compression but gzip a message is written uncompressed, which
 * its envelope says.
 */
export function writerOf(context: StreamContext): Writer {
  const contentType = context.requestHeader.get("content-type") ?? "";
  const compression =
    context.responseHeader.get("grpc-encoding") ??
    context.responseHeader.get("connect-content-encoding");
  const isJson = /\+json(?:;|$)/.test(contentType);
  const encoder = encoderOf(context.method.output, isJson, compression === "gzip");
  return {
    push: (event) => pushTo(outletOf(context.values), () => encoder.event(event)),
    beat: () => void pushTo(outletOf(context.values), () => encoder.heartbeat),
  };
}

/** Writes a message. Returns false if the response has not begun, is over or has a full buffer. */
export function pushTo(outlet: Outlet | undefined, message: () => Uint8Array): boolean {
  if (!outlet || isOver(outlet) || !outlet.headersSent) return false;
  if (outlet.writableNeedDrain || outlet.writableEnded) return false;
  outlet.write(message());
  return true;
}

/** Encodes the messages of a stream, each event once for all its watchers. */
export interface EventEncoder {
  readonly event: (event: Event) => Uint8Array;
  /** A message without an event. */
  readonly heartbeat: Uint8Array;
}

/** Encoders by output message, codec and compression. */
const encoders = new Map<string, EventEncoder>();

/** @param output a message type with an `event` field */
export function encoderOf(output: DescMessage, isJson: boolean, isGzip: boolean): EventEncoder {
  const key = `${output.typeName} ${isJson} ${isGzip}`;
  const known = encoders.get(key);
  if (known) return known;
  const writeJson = jsonWriterOf(output);
  const encode = (init: { event?: Event }) => {
    const message = create(output, init as Record<string, unknown>);
    const data = isJson ? Buffer.from(writeJson(message)) : toBinary(output, message);
    return envelope({ flags: 0, data }, isGzip);
  };
  const encoder = { event: oncePerEvent((event) => encode({ event })), heartbeat: encode({}) };
  encoders.set(key, encoder);
  return encoder;
}
