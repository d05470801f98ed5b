import { brotliDecompressSync, gunzipSync } from "node:zlib";
import type { Message } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import {
  type Compression,
  createAsyncIterable,
  pipe,
  type Serialization,
  transformDecompressEnvelope,
  transformParseEnvelope,
  transformSplitEnvelope,
} from "@connectrpc/connect/protocol";
import { GatewayError, unlessAborted } from "../errors.ts";
import { intakeLimits } from "../net/intake-limits.ts";
import { invalid } from "./decode-errors.ts";
import { decodeRequest } from "./decode-request.ts";
import { compressionNotNamed } from "./errors.ts";
import { type ArrivedCall, isBidi, type ServedMethod } from "./methods.ts";
import { plainMessage } from "./protocols.ts";

/**
 * The request of a call whose caller is known, as a promise if it is not at hand; of a method that
 * takes a stream of them, each as it arrives, until the signal aborts.
 * @throws GatewayError or ConnectError for a body that is malformed or beyond the limits
 * @throws GatewayError CANCELLED if the body does not arrive, RESOURCE_EXHAUSTED if it was dropped
 */
export function requestOf(
  arrived: ArrivedCall,
  signal: AbortSignal,
): Message | Promise<Message> | AsyncIterable<Message> {
  const { method, head, asked, slot, options } = arrived;
  if (isBidi(method)) return decodeEnvelopes(piecesOf(arrived, signal), arrived);
  const maxBytes = method.readMaxBytes + asked.protocol.extraBytes;
  // Over HTTP/1.1 Node's server enforces the time-out.
  const timeoutMs = head.httpVersion === "2" ? options.limits.requestTimeoutMs : undefined;
  const body = asked.query
    ? messageOfQuery(asked.query)
    : head.body.whole({ maxBytes, timeoutMs, slot }, () => tooLarge(method));
  if (body instanceof Promise) return body.then((late) => decoded(late, arrived));
  return decoded(body, arrived);
}

function decoded(body: Buffer, arrived: ArrivedCall): Message | Promise<Message> {
  const { method, asked } = arrived;
  const plain = plainMessage(body, asked);
  if (!plain) return decodeUnusual(body, arrived);
  return decodeRequest(method.method.input, plain, asked.protocol.isJson);
}

function tooLarge({ readMaxBytes }: Pick<ServedMethod, "readMaxBytes">): Error {
  return new GatewayError(
    "RESOURCE_EXHAUSTED",
    `message size is larger than configured readMaxBytes ${readMaxBytes}`,
  );
}

/**
 * Decodes a body that is not one plain message: one that is compressed, or that Connect's own
 * functions have to refuse in their words.
 */
async function decodeUnusual(body: Buffer, arrived: ArrivedCall): Promise<Message> {
  const { asked, method, head, options } = arrived;
  // The caller may have been identified after the call's turn, and to decompress takes milliseconds.
  if (asked.encoding) await options.intake.turn(head.connection);
  if (asked.protocol.extraBytes === 0) {
    const message = asked.encoding ? decompressed(arrived, body) : body;
    return decodeRequest(method.method.input, message, asked.protocol.isJson);
  }
  // Connect would look at the next envelope before it decodes the first one.
  const firstEnd = body.length < 5 ? body.length : 5 + body.readUInt32BE(1);
  const pieces = createAsyncIterable([body.subarray(0, firstEnd), body.subarray(firstEnd)]);
  const kind = method.isUnary ? "unary" : "server-streaming";
  const messages = decodeEnvelopes(pieces, arrived)[Symbol.asyncIterator]();
  const { done, value } = await messages.next();
  if (done) throw wrongNumber(`missing input message for ${kind} method`);
  if (!(await messages.next()).done) {
    throw wrongNumber(`received extra input message for ${kind} method`);
  }
  return value;
}

function wrongNumber(what: string): GatewayError {
  return new GatewayError("UNIMPLEMENTED", `protocol error: ${what}`);
}

/** Decodes the messages of a body by Connect's own functions, which word the refusals. */
function decodeEnvelopes(
  pieces: AsyncIterable<Uint8Array>,
  arrived: ArrivedCall,
): AsyncIterable<Message> {
  const { asked, method } = arrived;
  const { isJson, endFlag } = asked.protocol;
  const decompress: Compression["decompress"] = async (bytes) => {
    if (asked.encoding) return decompressed(arrived, bytes);
    // gRPC demands this code (doc/compression.md).
    const message = "a message is flagged as compressed, and no header names how";
    throw new GatewayError("INTERNAL", message, { reason: compressionNotNamed });
  };
  const parse = (message: Uint8Array) => decodeRequest(method.method.input, message, isJson);
  return pipe(
    pieces,
    transformSplitEnvelope(method.readMaxBytes),
    transformDecompressEnvelope({ decompress } as Compression, method.readMaxBytes),
    transformParseEnvelope({ parse } as Serialization<Message>, endFlag as number),
  );
}

/**
 * A message, decompressed within the limits of memory.
 * @throws GatewayError RESOURCE_EXHAUSTED if it grows beyond them
 */
function decompressed({ method, asked }: ArrivedCall, bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const { freeBytes, ratio } = intakeLimits;
  const { readMaxBytes: maxBytes } = method;
  const maxOutputLength = Math.min(maxBytes, freeBytes + ratio * bytes.length);
  if (bytes.length === 0) return new Uint8Array();
  try {
    const decompress = asked.encoding?.name === "gzip" ? gunzipSync : brotliDecompressSync;
    return decompress(bytes, { maxOutputLength });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_BUFFER_TOO_LARGE") {
      throw invalid("decompression failed");
    }
    const why =
      maxOutputLength < maxBytes
        ? `message grows more than ${ratio} times as large by decompression`
        : `message is larger than configured readMaxBytes ${maxBytes} after decompression`;
    throw new GatewayError("RESOURCE_EXHAUSTED", why);
  }
}

/**
 * The message in the URL of a read by GET.
 * @throws GatewayError INVALID_ARGUMENT if it should be in base64 and is not
 */
function messageOfQuery(query: URLSearchParams): Buffer {
  const message = query.get("message") ?? "";
  if (query.get("base64") !== "1") return Buffer.from(message);
  try {
    return Buffer.from(base64Decode(message));
  } catch {
    throw invalid("the message in the URL is not base64");
  }
}

/** The pieces of a body of many messages, all together within a limit. */
async function* piecesOf(
  { head, method }: ArrivedCall,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  for (;;) {
    signal.throwIfAborted();
    const next = head.body.next(intakeLimits.openBodyBytes, () => tooLarge(method));
    const piece = await unlessAborted(next, signal);
    if (piece === undefined) return;
    yield piece;
  }
}
