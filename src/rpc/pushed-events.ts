import { ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { compressedFlag } from "@connectrpc/connect/protocol";
import type { Call } from "../core/core.ts";
import { oncePerEvent } from "../core/once-per-event.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";
import { answerOf, isOver } from "./answer.ts";
import { jsonWriterOf } from "./json-writer.ts";
import { compressMinBytes } from "./unary-protocols.ts";

/** A method whose answer is a stream of messages with an `event`. */
type StreamContext = Pick<HandlerContext, "method" | "values" | "requestHeader" | "responseHeader">;

/**
 * Writes events of a stream to its socket in the call that stores them, past Connect's pipeline, which
 * waits for a message meanwhile. All protocols put the same envelope around a message of a stream, so
 * that one is made of each event, and shared by all who watch it.
 */
export function pushOf(context: StreamContext): Call["push"] {
  const answer = answerOf(context.values);
  const encode = answer && encoderOf(context);
  if (!encode) return undefined;
  return (event) => {
    if (isOver(answer) || !answer.headersSent) return false;
    const socket = answer instanceof ServerResponse ? answer : answer.stream;
    if (socket.writableNeedDrain || socket.writableEnded) return false;
    socket.write(encode(event));
    return true;
  };
}

type Encode = (event: Event) => Buffer;

/** By method, codec and compression. */
const encoders = new Map<string, Encode>();

/** Undefined for what only Connect can write. */
function encoderOf({ method, requestHeader, responseHeader }: StreamContext): Encode | undefined {
  const contentType = requestHeader.get("content-type") ?? "";
  const isJson = /\+json(?:;|$)/.test(contentType);
  const compression =
    responseHeader.get("grpc-encoding") ?? responseHeader.get("connect-content-encoding");
  if (compression !== null && compression !== "gzip") return undefined;
  const key = `${method.output.typeName} ${isJson ? "json" : "proto"} ${compression}`;
  let encode = encoders.get(key);
  if (!encode) {
    encode = oncePerEvent(envelopeWriter(method.output, isJson, compression === "gzip"));
    encoders.set(key, encode);
  }
  return encode;
}

function envelopeWriter(
  output: StreamContext["method"]["output"],
  isJson: boolean,
  compresses: boolean,
): Encode {
  const writeJson = jsonWriterOf(output);
  return (event) => {
    const message = create(output, { event } as Record<string, unknown>);
    const data = isJson ? Buffer.from(writeJson(message)) : toBinary(output, message);
    return compresses && data.byteLength >= compressMinBytes
      ? envelope(compressedFlag, gzipSync(data))
      : envelope(0, data);
  };
}

function envelope(flags: number, data: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafeSlow(5 + data.byteLength);
  bytes.writeUInt8(flags, 0);
  bytes.writeUInt32BE(data.byteLength, 1);
  bytes.set(data, 5);
  return bytes;
}
