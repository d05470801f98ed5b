import type { DescMessage } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type Compression,
  compressedFlag,
  type UniversalHandler,
} from "@connectrpc/connect/protocol";
import type { Slot } from "../net/admission.ts";
import { countArrival } from "../net/arrival.ts";
import { type Intake, receiveWhole, unreadError } from "../net/intake.ts";
import { intakeLimits } from "../net/intake-limits.ts";
import { overloaded } from "../net/overloaded.ts";
import type { RequestHead } from "../net/request-head.ts";
import { excessOfBinary } from "./bounded-binary.ts";
import { compressionNamed, decompressed, maxDecompressedBytes } from "./compressions.ts";
import { outward } from "./errors.ts";

export interface ReceiveOptions {
  readonly intake: Intake;
  /** Largest request message, in bytes. */
  readonly readMaxBytes: number;
  /** Longest a body may take to arrive, in milliseconds. */
  readonly requestTimeoutMs: number;
}

/**
 * The whole body of a call whose caller is known, to be decoded in this turn of the event loop: one
 * that arrived after the call's own turn waits for another.
 * @param maxBytes most bytes of a body with a message of `readMaxBytes`
 * @throws GatewayError CANCELLED if the body does not arrive, RESOURCE_EXHAUSTED if it was dropped
 * @throws ConnectError if it is too large
 */
export async function receiveBody(
  head: RequestHead,
  maxBytes: number,
  { intake, readMaxBytes, requestTimeoutMs }: ReceiveOptions,
  slot?: Slot,
): Promise<Buffer> {
  const arrived = slot && countArrival(slot);
  const limits = { maxBytes, timeoutMs: requestTimeoutMs };
  const body = await receiveWhole(head, limits, () => tooLarge(readMaxBytes)).finally(arrived);
  await intake.turn(head.connection);
  return body;
}

function tooLarge(readMaxBytes: number): Error {
  return new ConnectError(
    `message size is larger than configured readMaxBytes ${readMaxBytes}`,
    Code.ResourceExhausted,
  );
}

/** @throws ConnectError INVALID_ARGUMENT for a message that would hold more than the limits */
export function checkBinary(type: DescMessage, bytes: Uint8Array): void {
  const excess = excessOfBinary(type, bytes);
  if (excess) throw new ConnectError(`the request ${excess}`, Code.InvalidArgument);
}

/** The request as Connect reads it. */
interface ReadRequest {
  readonly handler: UniversalHandler;
  readonly head: RequestHead;
  /** The headers that Connect sees: those that describe the body's compression change. */
  readonly header: Headers;
  readonly slot: Slot;
  /** The body, if it was received already. */
  readonly received: Uint8Array | undefined;
  /** Whether the service needs no credentials. */
  readonly isOpen: boolean;
}

/**
 * The body for Connect. It is read only once Connect asks for it, after the gate, and it is handed
 * over decompressed, and only if it is within the limits.
 */
export function bodyForConnect(
  request: ReadRequest,
  options: ReceiveOptions,
): AsyncIterable<Uint8Array> {
  const { handler, header } = request;
  const { methodKind } = handler.method;
  if (methodKind !== "unary" && methodKind !== "server_streaming")
    return piecesOf(request, options);
  const isEnvelope = methodKind !== "unary" || !isConnectUnary(header.get("content-type") ?? "");
  const encoding = header.get("content-encoding");
  const compression = isEnvelope || request.isOpen ? undefined : compressionNamed(encoding);
  if (compression) {
    // The body is decompressed here; the answer may be compressed in the same way.
    header.delete("content-encoding");
    header.delete("content-length");
    if (!header.has("accept-encoding")) header.set("accept-encoding", compression.name);
  }
  return outwardErrors(() => wholeBody(request, options, isEnvelope, compression));
}

async function* outwardErrors(
  read: () => AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void> {
  try {
    yield* read();
  } catch (error) {
    throw outward(error);
  }
}

async function* wholeBody(
  request: ReadRequest,
  options: ReceiveOptions,
  isEnvelope: boolean,
  compression: Compression | undefined,
): AsyncGenerator<Uint8Array, void> {
  const { handler, head, header, slot, received, isOpen } = request;
  const ofMessage = isOpen ? intakeLimits.openMessageBytes : options.readMaxBytes;
  const limits = { ...options, readMaxBytes: ofMessage };
  // Connect words the refusal of a body with more than one message.
  const maxBytes = isEnvelope ? Math.min(2 * ofMessage, intakeLimits.bodyBytes) : ofMessage;
  // A stream gives its slot back when it begins.
  const ofSlot = handler.method.methodKind === "unary" ? slot : undefined;
  const body =
    received ?? head.body.atHand(maxBytes) ?? (await receiveBody(head, maxBytes, limits, ofSlot));
  const isJson = /json/.test(header.get("content-type") ?? "");
  const of: Decoding = { ...request, ...options, isJson };
  if (!isEnvelope) {
    yield await messageOf(body as Uint8Array<ArrayBuffer>, compression, of);
    return;
  }
  const name = header.get("grpc-encoding") ?? header.get("connect-content-encoding");
  for (let at = 0; at < body.length; ) {
    const flags = body[at] ?? 0;
    const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
    const length = at + 5 <= body.length ? view.getUint32(at + 1) : body.length;
    const end = at + 5 + length;
    if (end > body.length || length > ofMessage) {
      // Connect words the refusal.
      yield body.subarray(at);
      return;
    }
    const isCompressed = (flags & compressedFlag) !== 0;
    const by = isCompressed && !isOpen ? compressionNamed(name) : undefined;
    const data = body.subarray(at + 5, end) as Uint8Array<ArrayBuffer>;
    if (isCompressed && !by) yield body.subarray(at, end);
    else yield* envelopeOf(by ? flags ^ compressedFlag : flags, await messageOf(data, by, of));
    at = end;
  }
}

interface Decoding extends Pick<ReadRequest, "handler" | "head">, ReceiveOptions {
  readonly isJson: boolean;
}

/** One message, decompressed and checked: that of JSON is checked with its text. */
async function messageOf(
  bytes: Uint8Array<ArrayBuffer>,
  compression: Compression | undefined,
  { handler, head, intake, readMaxBytes, isJson }: Decoding,
): Promise<Uint8Array> {
  let message = bytes;
  if (compression && bytes.length > 0) {
    let isDropped = false;
    const drop = () => {
      isDropped = true;
    };
    const buffered = intake.budget.open(head.connection, { drop });
    try {
      buffered.grow(maxDecompressedBytes(bytes.length, readMaxBytes));
      if (isDropped) throw overloaded();
      message = await decompressed(compression, bytes, readMaxBytes);
      await intake.turn(head.connection);
      if (isDropped) throw overloaded();
    } finally {
      buffered.close();
    }
  }
  if (!isJson) checkBinary(handler.method.input, message);
  return message;
}

function* envelopeOf(flags: number, message: Uint8Array): Generator<Uint8Array, void> {
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(message.length, 1);
  yield head;
  yield message;
}

/** The pieces of a body of many messages, all together within a limit. */
async function* piecesOf(
  { head }: ReadRequest,
  { readMaxBytes }: ReceiveOptions,
): AsyncGenerator<Uint8Array, void> {
  for (;;) {
    const piece = await head.body.next(intakeLimits.openBodyBytes);
    if (piece === undefined) return;
    if (typeof piece === "string") {
      throw outward(unreadError(piece, () => tooLarge(readMaxBytes)));
    }
    yield piece;
  }
}

function isConnectUnary(contentType: string): boolean {
  return /^application\/(?:json|proto)/.test(contentType);
}
