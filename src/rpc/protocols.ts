import type { IncomingHttpHeaders } from "node:http";
import { gzipSync } from "node:zlib";
import type { ConnectError } from "@connectrpc/connect";
import {
  type Compression,
  compressedFlag,
  compressionNegotiate,
  type EnvelopedMessage,
  encodeEnvelopes,
  envelopeCompress,
} from "@connectrpc/connect/protocol";
import {
  codeToHttpStatus,
  createEndStreamSerialization,
  endStreamFlag,
  errorToJsonBytes,
  parseTimeout as parseConnectTimeout,
} from "@connectrpc/connect/protocol-connect";
import {
  parseTimeout as parseGrpcTimeout,
  setTrailerStatus,
} from "@connectrpc/connect/protocol-grpc";
import { trailerFlag } from "@connectrpc/connect/protocol-grpc-web";
import type { HttpResponse } from "../net/request-head.ts";
import { compressions } from "./compressions.ts";
import { encodeGrpcMessage } from "./grpc-message.ts";

type Headers = Readonly<Record<string, string>>;

/** What a protocol of unary calls and one of streams have in common: the content type names it. */
export interface Protocol {
  readonly name: "connect" | "grpc" | "grpc-web";
  readonly isJson: boolean;
  readonly contentType: string;
  /** Whether HTTP/2 trailers end a response. */
  readonly hasTrailers: boolean;
  readonly asking: AskingHeaders;
}

/** How unary calls of one content type are read and answered. */
export interface UnaryProtocol extends Protocol {
  /**
   * The message in a body; undefined for a body that is not one plain message, which Connect
   * refuses.
   */
  readonly messageIn: (body: Buffer) => Uint8Array | undefined;
  /** Bytes of a body besides those of its message. */
  readonly extraBytes: number;
  /** @param message proto JSON as text, or binary as bytes */
  readonly succeed: (
    message: Uint8Array | string,
    headers: Headers,
    compression: Compression | null,
  ) => Answer;
  readonly fail: (error: ConnectError, headers: Headers, compression: Compression | null) => Answer;
}

/** A promise only if the response is compressed. */
export type Answer = HttpResponse | Promise<HttpResponse>;

/** How the messages of one content type are put into envelopes, and how they end. */
export interface StreamProtocol extends Protocol {
  /** What follows the messages: the error or, without one, success. */
  readonly end: (error: ConnectError | undefined) => StreamEnd;
}

export type StreamEnd = { readonly trailers: Headers } | EnvelopedMessage;

/** What the headers of a request ask for. */
export interface Asked<Of extends Protocol> {
  readonly protocol: Of;
  /** How long its caller waits, in milliseconds, if the request says so. */
  readonly timeoutMs: number | undefined;
  /** How its answer is to be compressed. */
  readonly compression: Compression | null;
}

/**
 * Reads the headers of an ordinary unary request. Undefined for any other, which Connect answers: a
 * compressed request, an unusual content type, an invalid time-out.
 */
export function unaryRequestOf(
  headers: IncomingHttpHeaders,
  httpVersion: "1.1" | "2",
): Asked<UnaryProtocol> | undefined {
  return requestOf(unaryProtocols, headers, httpVersion);
}

/** The same for a stream. An answer that is compressed by brotli is left to Connect too. */
export function streamRequestOf(
  headers: IncomingHttpHeaders,
  httpVersion: "1.1" | "2",
): Asked<StreamProtocol> | undefined {
  const request = requestOf(streamProtocols, headers, httpVersion);
  return (request?.compression?.name ?? "gzip") === "gzip" ? request : undefined;
}

function requestOf<Of extends Protocol>(
  protocols: ReadonlyMap<string, Of>,
  headers: IncomingHttpHeaders,
  httpVersion: "1.1" | "2",
): Asked<Of> | undefined {
  const protocol = protocols.get(headers["content-type"] ?? "");
  if (protocol === undefined || (protocol.hasTrailers && httpVersion !== "2")) return undefined;
  const names = protocol.asking;
  const encoding = headers[names.encoding];
  if (encoding !== undefined && encoding !== "identity") return undefined;
  const given = headers[names.timeout]?.toString() ?? null;
  const { timeoutMs, error } = names.parseTimeout(given, Number.POSITIVE_INFINITY);
  if (error) return undefined;
  const accepted = headers[names.accept]?.toString() ?? null;
  const { response } = compressionNegotiate(compressions, null, accepted, names.accept);
  return { protocol, timeoutMs, compression: response };
}

/** The headers by which a protocol describes a message, and says how long its caller waits. */
interface AskingHeaders {
  readonly encoding: string;
  readonly accept: string;
  readonly timeout: string;
  readonly parseTimeout: typeof parseConnectTimeout;
}

const connectHeaders: AskingHeaders = {
  encoding: "content-encoding",
  accept: "accept-encoding",
  timeout: "connect-timeout-ms",
  parseTimeout: parseConnectTimeout,
};

const connectStreamHeaders: AskingHeaders = {
  ...connectHeaders,
  encoding: "connect-content-encoding",
  accept: "connect-accept-encoding",
};

const grpcHeaders: AskingHeaders = {
  encoding: "grpc-encoding",
  accept: "grpc-accept-encoding",
  timeout: "grpc-timeout",
  parseTimeout: parseGrpcTimeout,
};

/** Smaller messages are sent uncompressed, as by Connect. */
const compressMinBytes = 1024;

export const envelopeBytes = 5;

/** The message of a body that is one plain envelope; undefined for any other body. */
export function messageOfEnvelope(body: Buffer): Uint8Array | undefined {
  if (body.length < envelopeBytes || body[0] !== 0) return undefined;
  const isWhole = body.readUInt32BE(1) === body.length - envelopeBytes;
  return isWhole ? bytesOf(body, envelopeBytes) : undefined;
}

/** The envelope of a message or of a stream's end, compressed if requested and large enough. */
export function envelope({ flags, data }: EnvelopedMessage, isGzip: boolean): Uint8Array {
  return isGzip && data.byteLength >= compressMinBytes
    ? encodeEnvelopes({ flags: flags | compressedFlag, data: gzipSync(data) })
    : encodeEnvelopes({ flags, data });
}

/** The headers of every response in envelopes, also of one that ends with an error. */
export function envelopeHeaders(
  { contentType, asking }: Protocol,
  compression: Compression | null,
): Headers {
  return {
    "content-type": contentType,
    ...(compression && { [asking.encoding]: compression.name }),
  };
}

/** A unary call of Connect's own protocol, the only one without envelopes. */
function connectUnary(codec: "json" | "proto"): UnaryProtocol {
  const contentType = `application/${codec}`;
  const answer = (
    status: number,
    message: Uint8Array | string,
    headers: Record<string, string>,
    compression: Compression | null,
  ): Answer => {
    const bytes = Buffer.byteLength(message);
    if (compression === null || bytes < compressMinBytes) {
      headers["content-length"] = String(bytes);
      return { status, headers, body: message };
    }
    return compression.compress(bytesOfMessage(message)).then((body) => {
      headers["content-encoding"] = compression.name;
      headers["content-length"] = String(body.byteLength);
      return { status, headers, body };
    });
  };
  return {
    ...{ name: "connect", isJson: codec === "json", contentType },
    ...{ hasTrailers: false, asking: connectHeaders, extraBytes: 0 },
    messageIn: (body) => bytesOf(body, 0),
    succeed: (message, headers, compression) =>
      answer(200, message, { "content-type": contentType, ...headers }, compression),
    fail(error, headers, compression) {
      const metadata = Object.fromEntries(error.metadata);
      const all = { ...headers, ...metadata, "content-type": "application/json" };
      return answer(codeToHttpStatus(error.code), errorToJsonBytes(error, {}), all, compression);
    },
  };
}

function connectStream(codec: "json" | "proto"): StreamProtocol {
  const serialization = createEndStreamSerialization({});
  return {
    ...{ name: "connect", isJson: codec === "json", contentType: `application/connect+${codec}` },
    ...{ hasTrailers: false, asking: connectStreamHeaders },
    end(error) {
      const data = serialization.serialize({
        metadata: new globalThis.Headers(),
        ...(error && { error }),
      });
      return { flags: endStreamFlag, data };
    },
  };
}

function grpcStream(name: "grpc" | "grpc-web", codec: "json" | "proto"): StreamProtocol {
  const hasTrailers = name === "grpc";
  return {
    ...{ name, isJson: codec === "json", contentType: `application/${name}+${codec}` },
    ...{ hasTrailers, asking: grpcHeaders },
    end(error) {
      const trailers = error ? trailersOf(error) : succeeded;
      return hasTrailers ? { trailers } : { flags: trailerFlag, data: trailerLines(trailers) };
    },
  };
}

/** A unary call of gRPC or gRPC-Web: a stream of one message. */
function grpcUnary(stream: StreamProtocol): UnaryProtocol {
  function answer(
    message: Uint8Array | string | undefined,
    error: ConnectError | undefined,
    headers: Headers,
    compression: Compression | null,
  ): Answer {
    const end = stream.end(error);
    const parts: EnvelopedMessage[] = [];
    if (message !== undefined) parts.push({ flags: 0, data: bytesOfMessage(message) });
    if ("data" in end) parts.push(end);
    const all = { ...envelopeHeaders(stream, compression), ...headers };
    const answerOf = (envelopes: readonly EnvelopedMessage[]): HttpResponse => ({
      ...{ status: 200, headers: all, body: encodeEnvelopes(...envelopes) },
      ...("trailers" in end && end),
    });
    if (compression === null) return answerOf(parts);
    return Promise.all(
      parts.map((part) => envelopeCompress(part, compression, compressMinBytes)),
    ).then(answerOf);
  }

  return {
    ...stream,
    messageIn: messageOfEnvelope,
    extraBytes: envelopeBytes,
    succeed: (message, headers, compression) => answer(message, undefined, headers, compression),
    fail(error, headers, compression) {
      if (!stream.hasTrailers) return answer(undefined, error, headers, compression);
      // The trailers are sent as the only headers: after separate headers, a client would take the
      // call as begun and not retry it (gRPC A6).
      const all = { ...envelopeHeaders(stream, compression), ...headers, ...trailersOf(error) };
      return { status: 200, headers: all, body: "" };
    },
  };
}

export const streamProtocols: ReadonlyMap<string, StreamProtocol> = new Map([
  ["application/connect+json", connectStream("json")],
  ["application/connect+proto", connectStream("proto")],
  ["application/grpc", grpcStream("grpc", "proto")],
  ["application/grpc+proto", grpcStream("grpc", "proto")],
  ["application/grpc+json", grpcStream("grpc", "json")],
  ["application/grpc-web", grpcStream("grpc-web", "proto")],
  ["application/grpc-web+proto", grpcStream("grpc-web", "proto")],
  ["application/grpc-web+json", grpcStream("grpc-web", "json")],
]);

export const unaryProtocols: ReadonlyMap<string, UnaryProtocol> = new Map([
  ["application/json", connectUnary("json")],
  ["application/proto", connectUnary("proto")],
  ...[...streamProtocols]
    .filter(([, { name }]) => name !== "connect")
    .map(([type, stream]) => [type, grpcUnary(stream)] as const),
]);

function bytesOfMessage(message: Uint8Array | string): Uint8Array {
  return typeof message === "string" ? Buffer.from(message) : message;
}

function bytesOf({ buffer, byteOffset, length }: Buffer, from: number): Uint8Array {
  return new Uint8Array(buffer, byteOffset + from, length - from);
}

const succeeded: Headers = { "grpc-status": "0" };

function trailersOf(error: ConnectError): Headers {
  const trailers = Object.fromEntries(setTrailerStatus(new globalThis.Headers(), error));
  return { ...trailers, "grpc-message": encodeGrpcMessage(error.rawMessage) };
}

/** Trailers as gRPC-Web sends them, in the body. */
function trailerLines(trailers: Headers): Buffer {
  const lines = Object.entries(trailers).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(lines.join(""));
}
