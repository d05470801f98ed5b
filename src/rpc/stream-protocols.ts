import type { IncomingHttpHeaders } from "node:http";
import type { ConnectError } from "@connectrpc/connect";
import {
  createEndStreamSerialization,
  endStreamFlag,
  parseTimeout,
} from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { trailerFlag } from "@connectrpc/connect/protocol-grpc-web";
import { withReadableMessage } from "./grpc-message.ts";
import { envelope, type MessageFormat } from "./pushed-events.ts";
import { type AskingHeaders, grpcHeaders, readAsked, trailerLines } from "./protocols.ts";

/** How the response of a streaming call is written: its protocol, codec and compression. */
export interface StreamProtocol extends MessageFormat {
  readonly name: "connect" | "grpc" | "grpc-web";
  /** Headers of every response, also of one that ends with an error. */
  readonly headers: Headers;
  /** Whether HTTP/2 trailers end the stream. */
  readonly hasTrailers: boolean;
  /** What follows the messages: the error or, without one, success. */
  readonly end: (error: ConnectError | undefined) => StreamEnd;
}

export type StreamEnd = { readonly trailers: Headers } | { readonly body: Buffer };

type Headers = Readonly<Record<string, string>>;

/** What the headers of an ordinary stream request ask for. */
export interface StreamRequest {
  readonly protocol: StreamProtocol;
  /** How long its caller waits, in milliseconds, if the request says so. */
  readonly timeoutMs: number | undefined;
}

/**
 * Reads the headers of an ordinary request. Undefined for any other, which Connect answers: a
 * compressed request, an unusual content type, an invalid time-out, a response that is compressed
 * by brotli.
 */
export function streamRequestOf(
  headers: IncomingHttpHeaders,
  httpVersion: "1.1" | "2",
): StreamRequest | undefined {
  const kind = kinds.get(headers["content-type"] ?? "");
  if (kind === undefined || (kind.plain.hasTrailers && httpVersion !== "2")) return undefined;
  const asked = readAsked(headers, kind.headers);
  const compression = asked?.compression?.name;
  if (!asked || (compression !== undefined && compression !== "gzip")) return undefined;
  return { protocol: compression ? kind.gzip : kind.plain, timeoutMs: asked.timeoutMs };
}

interface Kind {
  readonly headers: AskingHeaders;
  readonly plain: StreamProtocol;
  readonly gzip: StreamProtocol;
}

const connectHeaders: AskingHeaders = {
  encoding: "connect-content-encoding",
  accept: "connect-accept-encoding",
  timeout: "connect-timeout-ms",
  parseTimeout,
};

const kinds = new Map<string, Kind>([
  ["application/connect+json", connectKind(true)],
  ["application/connect+proto", connectKind(false)],
  ["application/grpc", grpcKind("grpc", false)],
  ["application/grpc+proto", grpcKind("grpc", false)],
  ["application/grpc+json", grpcKind("grpc", true)],
  ["application/grpc-web", grpcKind("grpc-web", false)],
  ["application/grpc-web+proto", grpcKind("grpc-web", false)],
  ["application/grpc-web+json", grpcKind("grpc-web", true)],
]);

function connectKind(isJson: boolean): Kind {
  const type = `application/connect+${isJson ? "json" : "proto"}`;
  const serialization = createEndStreamSerialization({});
  const protocol = (isGzip: boolean): StreamProtocol => ({
    ...{ name: "connect", isJson, isGzip, hasTrailers: false },
    headers: headersOf(type, "connect-content-encoding", isGzip),
    end(error) {
      const end = serialization.serialize({ metadata: new Headers(), ...(error && { error }) });
      return { body: envelope(endStreamFlag, end, isGzip) };
    },
  });
  return { headers: connectHeaders, plain: protocol(false), gzip: protocol(true) };
}

function grpcKind(name: "grpc" | "grpc-web", isJson: boolean): Kind {
  const type = `application/${name}+${isJson ? "json" : "proto"}`;
  const protocol = (isGzip: boolean): StreamProtocol => ({
    ...{ name, isJson, isGzip, hasTrailers: name === "grpc" },
    headers: headersOf(type, "grpc-encoding", isGzip),
    end(error) {
      const trailers = setTrailerStatus(new Headers({ "grpc-status": "0" }), error);
      if (name === "grpc") return { trailers: withReadableMessage(Object.fromEntries(trailers)) };
      return { body: envelope(trailerFlag, trailerLines(trailers), isGzip) };
    },
  });
  return { headers: grpcHeaders, plain: protocol(false), gzip: protocol(true) };
}

function headersOf(type: string, encodingHeader: string, isGzip: boolean): Headers {
  return { "content-type": type, ...(isGzip && { [encodingHeader]: "gzip" }) };
}
