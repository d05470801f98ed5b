import { promisify } from "node:util";
import { brotliCompress, brotliCompressSync, constants, gzipSync } from "node:zlib";
import type { ConnectError } from "@connectrpc/connect";
import {
  type Compression,
  compressedFlag,
  compressionNegotiate,
  type EnvelopedMessage,
  encodeEnvelopes,
  envelopeCompress,
  mergeNonProtocolHeaders,
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
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import type { HttpResponse, RequestHead } from "../net/request-head.ts";

type Headers = Readonly<Record<string, string>>;

/** What a protocol of unary calls and one of streams have in common: the content type names it. */
export interface Protocol {
  readonly name: "connect" | "grpc" | "grpc-web";
  readonly isJson: boolean;
  readonly contentType: string;
  /** Whether HTTP trailers end a response. */
  readonly hasTrailers: boolean;
  /** Bytes of a body besides those of its message: of the envelope, if messages have one. */
  readonly extraBytes: number;
  /** The flag of an envelope that ends a body. */
  readonly endFlag?: number;
  readonly asking: AskingHeaders;
  /** The answer to a call that failed before anything was sent. It is never compressed. */
  readonly fail: (error: ConnectError, headers: Headers) => HttpResponse;
}

/** How unary calls of one content type are read and answered. */
export interface UnaryProtocol extends Protocol {
  /** @param message proto JSON as text, or binary as bytes */
  readonly succeed: (
    message: Uint8Array | string,
    headers: Headers,
    compression: Compression | null,
  ) => Answer;
}

/** A promise only if the response is compressed. */
export type Answer = HttpResponse | Promise<HttpResponse>;

/** How the messages of one content type are put into envelopes, and how they end. */
export interface StreamProtocol extends Protocol {
  /** What follows the messages: the error or, without one, success. */
  readonly end: (error: ConnectError | undefined) => StreamEnd;
}

type StreamEnd = { readonly trailers: Headers } | EnvelopedMessage;

/** What the headers of a request ask for; of a read by GET also its URL. */
export interface Asked<Of extends Protocol> {
  readonly protocol: Of;
  /** How long its caller waits, in milliseconds, if the request says so. */
  readonly timeoutMs: number | undefined;
  /** How its message is compressed. */
  readonly encoding: Compression | null;
  /** How its answer is to be compressed. */
  readonly compression: Compression | null;
  /** A time-out or a compression that cannot be understood. */
  readonly error: ConnectError | undefined;
  /** Of a GET, whose message is in its URL. */
  readonly query?: URLSearchParams;
}

/** What a method grants to those who ask. */
export interface Granted {
  /** Longest time-out, in milliseconds: a server may end a call sooner than its caller would. */
  readonly maxTimeoutMs: number;
  /** The compressions that callers may use for requests and accept for responses. */
  readonly compressions: Compression[];
}

/** Reads the headers of a unary request; undefined if no protocol has its content type. */
export function unaryRequestOf(
  head: AskingHead,
  granted: Granted,
): Asked<UnaryProtocol> | undefined {
  if (head.method !== "GET") return requestOf(unaryProtocols, head, granted);
  const type = head.headers["content-type"];
  if (type && protocolOf(unaryProtocols, type)?.name !== "connect") return undefined;
  const query = new URL(head.url, "http://localhost").searchParams;
  const protocol = unaryProtocols.get(`application/${query.get("encoding")}`);
  if (protocol?.name !== "connect") return undefined;
  return { ...asked(protocol, head, query.get("compression"), granted), query };
}

/** The same for a stream. */
export function streamRequestOf(
  head: AskingHead,
  granted: Granted,
): Asked<StreamProtocol> | undefined {
  return head.method === "POST" ? requestOf(streamProtocols, head, granted) : undefined;
}

type AskingHead = Pick<RequestHead, "method" | "url" | "headers">;

function requestOf<Of extends Protocol>(
  protocols: ReadonlyMap<string, Of>,
  head: AskingHead,
  granted: Granted,
): Asked<Of> | undefined {
  const protocol = protocolOf(protocols, head.headers["content-type"]);
  return protocol && asked(protocol, head, head.headers[protocol.asking.encoding], granted);
}

function protocolOf<Of extends Protocol>(
  protocols: ReadonlyMap<string, Of>,
  type = "",
): Of | undefined {
  return protocols.get(type) ?? protocols.get(type.toLowerCase().replace(charset, ""));
}

/** The protocol of a content type, of unary calls or of streams; for an unknown one Connect's JSON. */
export function anyProtocolOf(type: string | undefined): Protocol {
  const known = protocolOf(unaryProtocols, type) ?? protocolOf(streamProtocols, type);
  return known ?? (unaryProtocols.get("application/json") as Protocol);
}

const charset = /(?<=json); *charset=(?:utf-?8|"utf-?8")$/;

function asked<Of extends Protocol>(
  protocol: Of,
  { headers }: AskingHead,
  encoding: string | string[] | null = null,
  { compressions, maxTimeoutMs }: Granted,
): Asked<Of> {
  const { timeout, accept, parseTimeout } = protocol.asking;
  const given = headers[timeout]?.toString() ?? null;
  const { timeoutMs, error } = parseTimeout(given, Number.POSITIVE_INFINITY);
  const accepted = headers[accept]?.toString() ?? null;
  const negotiated = compressionNegotiate(
    compressions,
    encoding?.toString() ?? null,
    accepted,
    accept,
  );
  return {
    protocol,
    timeoutMs: timeoutMs === undefined ? undefined : Math.min(timeoutMs, maxTimeoutMs),
    error: negotiated.error ?? error,
    encoding: negotiated.request,
    compression: negotiated.response,
  };
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

/**
 * How long a request's client waits, in milliseconds, if its headers say so: before its protocol is
 * known.
 */
export function askedTimeoutMs(headers: RequestHead["headers"]): number | undefined {
  const isGrpc = headers[grpcHeaders.timeout] !== undefined;
  const { timeout, parseTimeout } = isGrpc ? grpcHeaders : connectHeaders;
  return parseTimeout(headers[timeout]?.toString() ?? null, Number.POSITIVE_INFINITY).timeoutMs;
}

/** Smaller messages are sent uncompressed, as by Connect. */
const compressMinBytes = 1024;

const envelopeBytes = 5;

/** The message in a body; undefined for a body that is not one plain message. */
export function plainMessage(
  body: Buffer,
  { protocol, encoding }: Pick<Asked<Protocol>, "protocol" | "encoding">,
): Uint8Array | undefined {
  if (protocol.extraBytes === 0) return encoding ? undefined : bytesOf(body, 0);
  if (body.length < envelopeBytes || body[0] !== 0) return undefined;
  const isWhole = body.readUInt32BE(1) === body.length - envelopeBytes;
  return isWhole ? bytesOf(body, envelopeBytes) : undefined;
}

/** The envelope of a message or of a stream's end, compressed if requested and large enough. */
export function envelope(
  { flags, data }: EnvelopedMessage,
  compression: Compression | null,
): Uint8Array {
  if (!compression || data.byteLength < compressMinBytes) return encodeEnvelopes({ flags, data });
  const compressed =
    compression.name === "gzip" ? gzipSync(data) : brotliCompressSync(data, quickBrotli);
  return encodeEnvelopes({ flags: flags | compressedFlag, data: compressed });
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
  return {
    ...{ name: "connect", isJson: codec === "json", contentType },
    ...{ hasTrailers: false, asking: connectHeaders, extraBytes: 0 },
    succeed(message, headers, compression) {
      const all = { "content-type": contentType, ...headers };
      if (compression === null || Buffer.byteLength(message) < compressMinBytes) {
        return withLength(200, all, message);
      }
      const compressed = { ...all, "content-encoding": compression.name };
      return compression
        .compress(bytesOfMessage(message))
        .then((body) => withLength(200, compressed, body));
    },
    fail(error, headers) {
      const metadata = new globalThis.Headers();
      mergeNonProtocolHeaders(metadata, error.metadata);
      const type = { "content-type": "application/json" };
      const all = { ...headers, ...Object.fromEntries(metadata), ...type };
      return withLength(codeToHttpStatus(error.code), all, errorToJsonBytes(error, {}));
    },
  };
}

function withLength(status: number, headers: Headers, body: Uint8Array | string): HttpResponse {
  const length = String(Buffer.byteLength(body));
  return { status, headers: { ...headers, "content-length": length }, body };
}

function connectStream(codec: "json" | "proto"): StreamProtocol {
  const serialization = createEndStreamSerialization({});
  const protocol: StreamProtocol = {
    ...{ name: "connect", isJson: codec === "json", contentType: `application/connect+${codec}` },
    ...{ hasTrailers: false, asking: connectStreamHeaders },
    ...{ extraBytes: envelopeBytes, endFlag: endStreamFlag },
    end(error) {
      const data = serialization.serialize({
        metadata: new globalThis.Headers(),
        ...(error && { error }),
      });
      return { flags: endStreamFlag, data };
    },
    fail: (error, headers) => failInEnvelope(protocol, error, headers),
  };
  return protocol;
}

function grpcStream(name: "grpc" | "grpc-web", codec: "json" | "proto"): StreamProtocol {
  const hasTrailers = name === "grpc";
  const protocol: StreamProtocol = {
    ...{ name, isJson: codec === "json", contentType: `application/${name}+${codec}` },
    ...{ hasTrailers, asking: grpcHeaders, extraBytes: envelopeBytes },
    ...(!hasTrailers && { endFlag: trailerFlag }),
    end(error) {
      const trailers = error ? trailersOf(error) : succeeded;
      return hasTrailers ? { trailers } : { flags: trailerFlag, data: trailerLines(trailers) };
    },
    fail: (error, headers) => failInEnvelope(protocol, error, headers),
  };
  return protocol;
}

/** An answer that has only an end. */
function failInEnvelope(
  protocol: StreamProtocol,
  error: ConnectError,
  headers: Headers,
): HttpResponse {
  const all = { ...envelopeHeaders(protocol, null), ...headers };
  const end = protocol.end(error);
  if ("data" in end) return { status: 200, headers: all, body: encodeEnvelopes(end) };
  // The trailers are sent as the only headers: after separate headers, a client would take the call
  // as begun and not retry it (gRPC A6).
  return { status: 200, headers: { ...all, ...end.trailers }, body: "" };
}

/** A unary call of gRPC or gRPC-Web: a stream of one message. */
function grpcUnary(stream: StreamProtocol): UnaryProtocol {
  return {
    ...stream,
    succeed(message, headers, compression) {
      const end = stream.end(undefined);
      const answerOf = (envelope: EnvelopedMessage): HttpResponse => ({
        status: 200,
        headers: { ...envelopeHeaders(stream, compression), ...headers },
        ...("data" in end
          ? { body: encodeEnvelopes(envelope, end) }
          : { body: encodeEnvelopes(envelope), trailers: end.trailers }),
      });
      const plain = { flags: 0, data: bytesOfMessage(message) };
      if (compression === null) return answerOf(plain);
      return envelopeCompress(plain, compression, compressMinBytes).then(answerOf);
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

/** Encodes a text for gRPC's header `grpc-message`, more readably than Connect would. */
function encodeGrpcMessage(text: string): string {
  return text.replace(unfit, encodeURIComponent);
}

/** What `grpc-message` must percent-encode: all but printable ASCII, and the percent sign. */
const unfit = /[^\x20-\x24\x26-\x7e]+/gu;

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

const compressByBrotli = promisify(brotliCompress);

/**
 * Brotli's best quality, which is the default, takes a hundred times as long as the one here for a
 * tenth fewer bytes.
 */
const quickBrotli = {
  params: { [constants.BROTLI_PARAM_QUALITY]: 4, [constants.BROTLI_PARAM_LGWIN]: 18 },
};

export const compressions: Compression[] = [
  compressionGzip,
  {
    ...compressionBrotli,
    compress: (bytes) => compressByBrotli(bytes, quickBrotli) as Promise<Buffer<ArrayBuffer>>,
  },
];
