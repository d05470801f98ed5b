import type { IncomingHttpHeaders } from "node:http";
import type { ConnectError } from "@connectrpc/connect";
import {
  type Compression,
  compressedFlag,
  compressionNegotiate,
  encodeEnvelopes,
} from "@connectrpc/connect/protocol";
import {
  codeToHttpStatus,
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

/** How one unary call is read and answered, according to its headers. */
export interface UnaryProtocol {
  readonly name: "connect" | "grpc" | "grpc-web";
  readonly binary: boolean;
  /** How long its caller waits, in milliseconds, if the request says so. */
  readonly timeoutMs: number | undefined;
  /**
   * The message in a body; undefined for a body that is not one plain message, which Connect
   * refuses.
   */
  readonly messageIn: (body: Buffer) => Uint8Array | undefined;
  /** Most bytes of a body with a message of `maxBytes`. */
  readonly maxBodyBytes: (maxBytes: number) => number;
  /** @param message proto JSON as text, or binary as bytes */
  readonly succeed: (message: Uint8Array | string, headers: Headers) => Answer;
  readonly fail: (error: ConnectError, headers: Headers) => Answer;
}

/** A promise only if the response is compressed. */
export type Answer = HttpResponse | Promise<HttpResponse>;

type Headers = Readonly<Record<string, string>>;

/**
 * The protocol of an ordinary unary request. Undefined for any other, which Connect answers: a
 * compressed request, an unusual content type, an invalid time-out.
 */
export function protocolOf(
  headers: IncomingHttpHeaders,
  httpVersion: "1.1" | "2",
): UnaryProtocol | undefined {
  const kind = kinds.get(headers["content-type"] ?? "");
  if (kind === undefined || (kind.needsHttp2 && httpVersion !== "2")) return undefined;
  const asked = readAsked(headers, kind.headers);
  return asked && kind.protocol(asked.timeoutMs, asked.compression);
}

/** The headers by which a protocol describes a message, and says how long its caller waits. */
export interface AskingHeaders {
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

export const grpcHeaders: AskingHeaders = {
  encoding: "grpc-encoding",
  accept: "grpc-accept-encoding",
  timeout: "grpc-timeout",
  parseTimeout: parseGrpcTimeout,
};

/**
 * What a request's headers ask for: its time-out in milliseconds, and the compression of its
 * answer. Undefined for a compressed request, or an invalid time-out.
 */
export function readAsked(headers: IncomingHttpHeaders, names: AskingHeaders) {
  const encoding = headers[names.encoding];
  if (encoding !== undefined && encoding !== "identity") return undefined;
  const given = headers[names.timeout]?.toString() ?? null;
  const { timeoutMs, error } = names.parseTimeout(given, Number.POSITIVE_INFINITY);
  if (error) return undefined;
  const accepted = headers[names.accept]?.toString() ?? null;
  const { response } = compressionNegotiate(compressions, null, accepted, names.accept);
  return { timeoutMs, compression: response };
}

interface Kind {
  /** Whether it sends HTTP/2 trailers. */
  readonly needsHttp2: boolean;
  readonly headers: AskingHeaders;
  readonly protocol: (
    timeoutMs: number | undefined,
    compression: Compression | null,
  ) => UnaryProtocol;
}

const kinds = new Map<string, Kind>([
  ["application/json", connectKind(false)],
  ["application/proto", connectKind(true)],
  ["application/grpc", grpcKind(false)],
  ["application/grpc+proto", grpcKind(false)],
  ["application/grpc-web", grpcKind(true)],
  ["application/grpc-web+proto", grpcKind(true)],
]);

/** Smaller messages are sent uncompressed, as by Connect. */
export const compressMinBytes = 1024;

function connectKind(binary: boolean): Kind {
  const contentType = binary ? "application/proto" : "application/json";
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
    needsHttp2: false,
    headers: connectHeaders,
    protocol: (timeoutMs, compression) => ({
      name: "connect",
      binary,
      timeoutMs,
      messageIn: (body) => bytesOf(body, 0),
      maxBodyBytes: (maxBytes) => maxBytes,
      succeed: (message, headers) =>
        answer(200, message, { "content-type": contentType, ...headers }, compression),
      fail(error, headers) {
        const all = { ...headers, ...metadataOf(error), "content-type": "application/json" };
        const body = errorToJsonBytes(error, {});
        return answer(codeToHttpStatus(error.code), body, all, compression);
      },
    }),
  };
}

export const envelopeBytes = 5;

/** The message of a body that is one plain envelope; undefined for any other body. */
export function messageOfEnvelope(body: Buffer): Uint8Array | undefined {
  if (body.length < envelopeBytes || body[0] !== 0) return undefined;
  const isWhole = body.readUInt32BE(1) === body.length - envelopeBytes;
  return isWhole ? bytesOf(body, envelopeBytes) : undefined;
}

function grpcKind(web: boolean): Kind {
  const contentType = web ? "application/grpc-web+proto" : "application/grpc+proto";

  function headersOf(compression: Compression | null): Headers {
    const encoding = compression ? { "grpc-encoding": compression.name } : undefined;
    return { "content-type": contentType, ...encoding };
  }

  function answer(
    message: Uint8Array | string | undefined,
    trailers: Headers,
    headers: Headers,
    compression: Compression | null,
  ): Answer {
    const parts: Envelope[] = [];
    if (message !== undefined) parts.push({ flags: 0, data: bytesOfMessage(message) });
    if (web) {
      parts.push({ flags: trailerFlag, data: trailerLines(Object.entries(trailers)) });
    }
    const all = { ...headersOf(compression), ...headers };
    const answerOf = (envelopes: readonly Envelope[]): HttpResponse => ({
      ...{ status: 200, headers: all, body: encodeEnvelopes(...envelopes) },
      ...(web ? undefined : { trailers }),
    });
    if (compression === null) return answerOf(parts);
    return Promise.all(parts.map((part) => compressed(part, compression))).then(answerOf);
  }

  return {
    needsHttp2: !web,
    headers: grpcHeaders,
    protocol: (timeoutMs, compression) => ({
      name: web ? "grpc-web" : "grpc",
      binary: true,
      timeoutMs,
      messageIn: messageOfEnvelope,
      maxBodyBytes: (maxBytes) => maxBytes + envelopeBytes,
      succeed: (message, headers) => answer(message, succeeded, headers, compression),
      fail: (error, headers) =>
        web
          ? answer(undefined, trailersOf(error), headers, compression)
          : trailersOnly({ ...headersOf(compression), ...headers, ...trailersOf(error) }),
    }),
  };
}

function bytesOfMessage(message: Uint8Array | string): Uint8Array {
  return typeof message === "string" ? Buffer.from(message) : message;
}

function bytesOf({ buffer, byteOffset, length }: Buffer, from: number): Uint8Array {
  return new Uint8Array(buffer, byteOffset + from, length - from);
}

/**
 * A gRPC error whose trailers are sent as the only headers: after separate headers, a client would
 * take the call as begun and not retry it (gRPC A6).
 */
function trailersOnly(headers: Headers): HttpResponse {
  return { status: 200, headers, body: "" };
}

const succeeded = { "grpc-status": "0" };

interface Envelope {
  readonly flags: number;
  readonly data: Uint8Array;
}

async function compressed({ flags, data }: Envelope, compression: Compression): Promise<Envelope> {
  if (data.byteLength < compressMinBytes) return { flags, data };
  return { flags: flags | compressedFlag, data: await compression.compress(data) };
}

/** Trailers as gRPC-Web sends them, in the body. */
export function trailerLines(trailers: Iterable<readonly [string, string]>): Buffer {
  return Buffer.from([...trailers].map(([name, value]) => `${name}: ${value}\r\n`).join(""));
}

function trailersOf(error: ConnectError): Headers {
  const trailers = Object.fromEntries(setTrailerStatus(new globalThis.Headers(), error));
  return { ...trailers, "grpc-message": encodeGrpcMessage(error.rawMessage) };
}

function metadataOf(error: ConnectError): Headers {
  return Object.fromEntries(error.metadata);
}
