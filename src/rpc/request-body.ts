import type { DescMessage, DescMethod, Message } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type Compression,
  createAsyncIterable,
  pipe,
  type Serialization,
  transformDecompressEnvelope,
  transformParseEnvelope,
  transformSplitEnvelope,
} from "@connectrpc/connect/protocol";
import { GatewayError } from "../errors.ts";
import type { Slot } from "../net/admission.ts";
import { countArrival } from "../net/arrival.ts";
import { type Intake, receiveWhole, unreadError } from "../net/intake.ts";
import { intakeLimits } from "../net/intake-limits.ts";
import { overloaded } from "../net/overloaded.ts";
import type { RequestHead } from "../net/request-head.ts";
import { excessOfBinary } from "./bounded-binary.ts";
import { outward } from "./errors.ts";
import type { Asked, Protocol } from "./protocols.ts";

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

/**
 * Decodes a body that is not one plain message: one that is compressed, or that Connect's own
 * functions have to refuse in their words.
 * @throws GatewayError RESOURCE_EXHAUSTED if it was dropped to free memory
 * @throws ConnectError for a body that is malformed or beyond the limits
 */
export async function decodeUnusual(
  body: Buffer,
  { protocol, encoding, query }: Asked<Protocol>,
  { head, method: { method, decode: decodeOne } }: Decoding,
  { intake, readMaxBytes }: Pick<ReceiveOptions, "intake" | "readMaxBytes">,
): Promise<Message> {
  const maxBytes = query ? Math.min(readMaxBytes, intakeLimits.addressMessageBytes) : readMaxBytes;
  const decompress = (bytes: Uint8Array) =>
    decompressedInTurn(encoding as Compression, bytes, { head, intake, maxBytes });
  const compression = encoding && { ...encoding, decompress };
  const decode = (message: Uint8Array) => decodeOne(message, !protocol.isJson);
  if (protocol.extraBytes === 0) {
    return decode(encoding ? await decompress(body) : body);
  }
  // Connect would look at the next envelope before it decodes the first one.
  const firstEnd = body.length < 5 ? body.length : 5 + body.readUInt32BE(1);
  const kind = method.methodKind === "unary" ? "unary" : "server-streaming";
  const messages = pipe(
    createAsyncIterable([body.subarray(0, firstEnd), body.subarray(firstEnd)]),
    transformSplitEnvelope(readMaxBytes),
    transformDecompressEnvelope(compression, readMaxBytes),
    transformParseEnvelope({ parse: decode } as Serialization<Message>, protocol.endFlag as number),
  )[Symbol.asyncIterator]();
  const { done, value } = await messages.next();
  if (done) throw wrongNumber(`missing input message for ${kind} method`);
  if (!(await messages.next()).done) {
    throw wrongNumber(`received extra input message for ${kind} method`);
  }
  return value;
}

interface Decoding {
  readonly head: RequestHead;
  readonly method: {
    readonly method: DescMethod;
    readonly decode: (message: Uint8Array, isBinary: boolean) => Message;
  };
}

function wrongNumber(what: string): ConnectError {
  return new ConnectError(`protocol error: ${what}`, Code.Unimplemented);
}

interface Decompressing extends Pick<ReceiveOptions, "intake"> {
  readonly head: RequestHead;
  readonly maxBytes: number;
}

/**
 * A message, decompressed within the limits of memory, and in a turn of its own.
 * @throws ConnectError RESOURCE_EXHAUSTED if it grows beyond the limits
 */
async function decompressedInTurn(
  compression: Compression,
  given: Uint8Array,
  { head, intake, maxBytes }: Decompressing,
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = given as Uint8Array<ArrayBuffer>;
  if (bytes.length === 0) return bytes;
  const { freeBytes, ratio } = intakeLimits;
  const maxGrown = Math.min(maxBytes, freeBytes + ratio * bytes.length);
  let isDropped = false;
  const drop = () => {
    isDropped = true;
  };
  const buffered = intake.budget.open(head.connection, { drop });
  try {
    buffered.grow(maxGrown);
    if (isDropped) throw overloaded();
    const message = await compression.decompress(bytes, maxGrown).catch((error: unknown) => {
      const isTooLarge = error instanceof ConnectError && error.code === Code.ResourceExhausted;
      throw isTooLarge && maxGrown < maxBytes ? growsTooMuch() : error;
    });
    await intake.turn(head.connection);
    if (isDropped) throw overloaded();
    return message;
  } finally {
    buffered.close();
  }
}

function growsTooMuch(): ConnectError {
  const message = `message grows more than ${intakeLimits.ratio} times as large by decompression`;
  return new ConnectError(message, Code.ResourceExhausted);
}

/** The error for an address with other bytes than percent-encoded UTF-8. */
export function notUtf8(): GatewayError {
  return new GatewayError("INVALID_ARGUMENT", "the address must be percent-encoded UTF-8");
}

/** The message in the URL of a read by GET. */
export function messageOfQuery(query: URLSearchParams): Buffer {
  const message = query.get("message") ?? "";
  return Buffer.from(query.get("base64") === "1" ? base64Decode(message) : message);
}

/**
 * The body of a call to a service that needs no credentials, for Connect, which asks for it after
 * the gate.
 */
export async function* bodyOfOpenCall(
  head: RequestHead,
  { methodKind }: DescMethod,
  options: ReceiveOptions,
): AsyncGenerator<Uint8Array, void> {
  const limits = { ...options, readMaxBytes: intakeLimits.openMessageBytes };
  try {
    if (methodKind === "bidi_streaming") return yield* piecesOf(head, limits);
    // Connect words the refusal of a body with more than one message.
    const maxBytes = 2 * limits.readMaxBytes;
    yield head.body.atHand(maxBytes) ?? (await receiveBody(head, maxBytes, limits));
  } catch (error) {
    throw outward(error);
  }
}

/** The pieces of a body of many messages, all together within a limit. */
async function* piecesOf(
  head: RequestHead,
  { readMaxBytes }: ReceiveOptions,
): AsyncGenerator<Uint8Array, void> {
  for (;;) {
    const piece = await head.body.next(intakeLimits.openBodyBytes);
    if (piece === undefined) return;
    if (typeof piece === "string") throw unreadError(piece, () => tooLarge(readMaxBytes));
    yield piece;
  }
}
