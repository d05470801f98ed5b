import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import type { ConnectError } from "@connectrpc/connect";
import {
  type Compression,
  compressedFlag,
  compressionNegotiate,
  encodeEnvelopes,
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

/**
 * How calls of one content type are read and answered. Connect has types of its own for unary calls,
 * whose messages alone have no envelope, and for streams. To gRPC a unary call is a stream of one
 * message.
 */
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
  /** What follows the messages in envelopes: the error or, without one, success. */
  readonly end: (error: ConnectError | undefined) => StreamEnd;
}

/** An envelope, or HTTP trailers. */
type StreamEnd = { readonly data?: Uint8Array; readonly trailers?: Headers };

/** What the headers of a request ask for; of a read by GET also its URL. */
export interface Asked {
  readonly protocol: Protocol;
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
  /** Whether it has one request and one answer. */
  readonly isUnary: boolean;
  /** Longest time-out, in milliseconds: a server may end a call sooner than its caller would. */
  readonly maxTimeoutMs: number;
  /** The compressions that callers may use for requests and accept for responses. */
  readonly compressions: Compression[];
}

/** Reads the headers of a request; undefined if no protocol of such calls has its content type. */
export function askedBy(
  { method, url, headers }: Pick<RequestHead, "method" | "url" | "headers">,
  granted: Granted,
): Asked | undefined {
  const { isUnary } = granted;
  const type = headers["content-type"];
  const protocol = protocolOf(type);
  if (method !== "GET") {
    if (!protocol || (protocol.name === "connect" && isConnectUnary(protocol) !== isUnary)) {
      return undefined;
    }
    return asked(protocol, headers, headers[protocol.asking.encoding], granted);
  }
  if (!isUnary || (type && !isConnectUnary(protocol))) return undefined;
  const query = new URL(url, "http://localhost").searchParams;
  const ofQuery = protocols.get(`application/${query.get("encoding")}`);
  if (!ofQuery || !isConnectUnary(ofQuery)) return undefined;
  return { ...asked(ofQuery, headers, query.get("compression"), granted), query };
}

function isConnectUnary(protocol: Protocol | undefined): boolean {
  return protocol?.extraBytes === 0;
}

function protocolOf(type = ""): Protocol | undefined {
  return protocols.get(type) ?? protocols.get(type.toLowerCase().replace(charset, ""));
}

/** The protocol of a content type; for an unknown one Connect's JSON. */
export function anyProtocolOf(type: string | undefined): Protocol {
  return protocolOf(type) ?? connectJson;
}

const charset = /(?<=json); *charset=(?:utf-?8|"utf-?8")$/;

function asked(
  protocol: Protocol,
  headers: RequestHead["headers"],
  encoding: string | string[] | null = null,
  { compressions, maxTimeoutMs }: Granted,
): Asked {
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

/** Smaller messages are sent uncompressed, as by Connect. */
const compressMinBytes = 1024;

const envelopeBytes = 5;

/** The message in a body; undefined for a body that is not one plain message. */
export function plainMessage(
  body: Buffer,
  { protocol, encoding }: Pick<Asked, "protocol" | "encoding">,
): Uint8Array | undefined {
  if (protocol.extraBytes === 0) return encoding ? undefined : bytesOf(body, 0);
  if (body.length < envelopeBytes || body[0] !== 0) return undefined;
  const isWhole = body.readUInt32BE(1) === body.length - envelopeBytes;
  return isWhole ? bytesOf(body, envelopeBytes) : undefined;
}

/** The envelope of a message, compressed if requested and large enough. */
export function envelope(data: Uint8Array, compression: Compression | null): Uint8Array {
  if (!compression || data.byteLength < compressMinBytes) {
    return encodeEnvelopes({ flags: 0, data });
  }
  return encodeEnvelopes({ flags: compressedFlag, data: compressed(data, compression) });
}

/** At once: to hand an answer of some KiB to another thread costs as much as to compress it. */
function compressed(data: Uint8Array, { name }: Compression): Uint8Array<ArrayBuffer> {
  return name === "gzip" ? gzipSync(data) : brotliCompressSync(data, quickBrotli);
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

/**
 * The answer to a unary call that succeeded.
 * @param message proto JSON as text, or binary as bytes
 */
export function successOf(
  protocol: Protocol,
  message: Uint8Array | string,
  given: Headers,
  compression: Compression | null,
): HttpResponse {
  if (isConnectUnary(protocol)) {
    const headers = { "content-type": protocol.contentType, ...given };
    if (compression === null || Buffer.byteLength(message) < compressMinBytes) {
      return withLength(200, headers, message);
    }
    const body = compressed(bytesOfMessage(message), compression);
    return withLength(200, { ...headers, "content-encoding": compression.name }, body);
  }
  const headers = { ...envelopeHeaders(protocol, compression), ...given };
  const first = envelope(bytesOfMessage(message), compression);
  const { data, trailers } = protocol.end(undefined);
  return { status: 200, headers, body: data ? Buffer.concat([first, data]) : first, trailers };
}

/** The answer to a call that failed before anything was sent. It is never compressed. */
export function failureOf(protocol: Protocol, error: ConnectError, given: Headers): HttpResponse {
  if (isConnectUnary(protocol)) {
    const metadata = new globalThis.Headers();
    mergeNonProtocolHeaders(metadata, error.metadata);
    const type = { "content-type": "application/json" };
    const headers = { ...given, ...Object.fromEntries(metadata), ...type };
    return withLength(codeToHttpStatus(error.code), headers, errorToJsonBytes(error, {}));
  }
  const headers = { ...envelopeHeaders(protocol, null), ...given };
  const { data = "", trailers } = protocol.end(error);
  // The trailers are sent as the only headers: after separate headers, a client would take the call
  // as begun and not retry it (gRPC A6).
  return { status: 200, headers: { ...headers, ...trailers }, body: data };
}

function withLength(status: number, headers: Headers, body: Uint8Array | string): HttpResponse {
  const length = String(Buffer.byteLength(body));
  return { status, headers: { ...headers, "content-length": length }, body };
}

function connect(codec: "json" | "proto", isStream = false): Protocol {
  const prefix = isStream ? "connect-" : "";
  return {
    ...{ name: "connect", isJson: codec === "json", hasTrailers: false, end: connectEnd },
    contentType: `application/${isStream ? "connect+" : ""}${codec}`,
    ...(isStream ? { extraBytes: envelopeBytes, endFlag: endStreamFlag } : { extraBytes: 0 }),
    asking: {
      encoding: `${prefix}content-encoding`,
      accept: `${prefix}accept-encoding`,
      timeout: "connect-timeout-ms",
      parseTimeout: parseConnectTimeout,
    },
  };
}

const connectEnds = createEndStreamSerialization({});

function connectEnd(error: ConnectError | undefined): StreamEnd {
  const metadata = new globalThis.Headers();
  const data = connectEnds.serialize({ metadata, ...(error && { error }) });
  return { data: encodeEnvelopes({ flags: endStreamFlag, data }) };
}

function grpc(name: "grpc" | "grpc-web", codec: "json" | "proto"): Protocol {
  const hasTrailers = name === "grpc";
  return {
    ...{ name, isJson: codec === "json", contentType: `application/${name}+${codec}` },
    ...{ hasTrailers, extraBytes: envelopeBytes },
    asking: {
      encoding: "grpc-encoding",
      accept: "grpc-accept-encoding",
      timeout: "grpc-timeout",
      parseTimeout: parseGrpcTimeout,
    },
    ...(!hasTrailers && { endFlag: trailerFlag }),
    end(error) {
      const trailers = error ? trailersOf(error) : succeeded;
      if (hasTrailers) return { trailers };
      return { data: encodeEnvelopes({ flags: trailerFlag, data: trailerLines(trailers) }) };
    },
  };
}

const connectJson = connect("json");

/** By content type. */
const protocols: ReadonlyMap<string, Protocol> = new Map([
  ["application/json", connectJson],
  ["application/proto", connect("proto")],
  ["application/connect+json", connect("json", true)],
  ["application/connect+proto", connect("proto", true)],
  ["application/grpc", grpc("grpc", "proto")],
  ["application/grpc+proto", grpc("grpc", "proto")],
  ["application/grpc+json", grpc("grpc", "json")],
  ["application/grpc-web", grpc("grpc-web", "proto")],
  ["application/grpc-web+proto", grpc("grpc-web", "proto")],
  ["application/grpc-web+json", grpc("grpc-web", "json")],
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

/**
 * Brotli's best quality, which is the default, takes a hundred times as long as the one here for a
 * tenth fewer bytes.
 */
const quickBrotli = {
  params: { [constants.BROTLI_PARAM_QUALITY]: 4, [constants.BROTLI_PARAM_LGWIN]: 18 },
};

export const compressions: Compression[] = [compressionGzip, compressionBrotli];
