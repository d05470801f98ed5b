import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import {
  constants,
  Http2ServerRequest,
  Http2ServerResponse,
  type ServerHttp2Stream,
} from "node:http2";
import type { Outlet, Request, Response } from "./request.ts";

/**
 * A request whose headers have arrived. Most of a request's cost is in the objects that read and
 * answer it, so they are created only when the request is served.
 */
export interface RequestHead {
  readonly method: string;
  readonly httpVersion: "1.1" | "2";
  /** With its query. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** Identifies the connection: all its requests have the same object. */
  readonly connection: object;
  /** Aborts when the connection has reached its maximum age and its streams must end. */
  readonly ending: AbortSignal | undefined;
  /** Whether the client has left. */
  isGone(): boolean;
  /** Calls back when the request is over, whether it was answered or not. */
  onClose(callback: () => void): void;
  /** Answers without reading the request's body; call it instead of `open`. */
  answer(status: number, headers: Readonly<Record<string, string>>, body?: Uint8Array): void;
  /**
   * Reads the whole body if it has arrived with the headers, as most do. Undefined for a body that
   * must be received, or that is longer than `maxBytes`.
   */
  bodyAtHand(maxBytes: number): Buffer | undefined;
  /**
   * Reads the whole body. Calls back once: with the body, with `too-large` as soon as it exceeds
   * `maxBytes` (the rest is discarded), or with `gone` if the client leaves before its end or takes
   * longer than `timeoutMs`.
   */
  receive(limits: BodyLimits, done: (body: Received) => void): void;
  /**
   * Answers a request whose body was received or is not needed. Only HTTP/2 sends trailers. Has no
   * effect if the client has left.
   */
  send(answer: HttpResponse): void;
  /**
   * Begins a response that is written piece by piece, under the same conditions; undefined if the
   * client has left. Over HTTP/1.1 the headers may wait for the first piece. With
   * `waitForTrailers`, the stream emits `wantTrailers` at its end (HTTP/2).
   */
  begin(answer: BegunResponse): Outlet | undefined;
  /** Node's request and response objects, for code that needs them. */
  open(): { readonly request: Request; readonly response: Response };
}

/** A `Host` or `:authority` with a plain name or address; the libraries handle all other forms. */
export const plainAuthority = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i;

export type Received = Buffer | "too-large" | "gone";

export interface BodyLimits {
  readonly maxBytes: number;
  readonly timeoutMs: number;
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** A string is written as UTF-8, over HTTP/1.1 in one write with the headers if possible. */
  readonly body: Uint8Array | string;
  readonly trailers?: Readonly<Record<string, string>>;
}

export interface BegunResponse extends Pick<HttpResponse, "status" | "headers"> {
  readonly waitForTrailers: boolean;
}

export function headOfHttp1(
  request: IncomingMessage,
  response: ServerResponse,
  ending?: AbortSignal,
): RequestHead {
  return {
    method: request.method ?? "",
    httpVersion: "1.1",
    url: request.url ?? "",
    headers: request.headers,
    connection: request.socket,
    ending,
    isGone: () => request.socket.destroyed,
    // `close` is emitted only once: `on` saves the wrapper that `once` would keep.
    onClose: (callback) => void response.on("close", callback),
    answer(status, headers, body) {
      // Discard the body: the next request on the connection waits behind it.
      request.on("error", () => {}).resume();
      response.writeHead(status, headers).end(body);
    },
    bodyAtHand: (maxBytes) => bodyAtHand(request, maxBytes),
    // Node's server enforces the time-out.
    receive: ({ maxBytes }, done) => receive(request, maxBytes, done),
    send({ status, headers, body }) {
      finishReading(request);
      response.writeHead(status, headers);
      // Node writes a string together with the headers. As latin1, an ASCII text needs no encoding.
      if (typeof body !== "string") response.end(body);
      else response.end(body, headers["content-length"] === `${body.length}` ? "latin1" : "utf8");
    },
    begin({ status, headers }) {
      if (response.destroyed) return undefined;
      finishReading(request);
      return response.writeHead(status, headers);
    },
    open: () => ({ request, response }),
  };
}

export function headOfHttp2(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  rawHeaders: readonly string[],
  ending?: AbortSignal,
): RequestHead {
  return {
    method: headers[":method"]?.toString() ?? "",
    httpVersion: "2",
    url: headers[":path"]?.toString() ?? "",
    headers,
    connection: stream.session ?? stream,
    ending,
    isGone: () => stream.closed || stream.destroyed,
    onClose: (callback) => void stream.on("close", callback),
    answer(status, answerHeaders, body) {
      if (stream.closed || stream.destroyed) return;
      const isEmpty = body === undefined || body.length === 0;
      // gRPC clients read headers as trailers only if these headers end the stream.
      stream.respond({ ":status": status, ...answerHeaders }, { endStream: isEmpty });
      if (!isEmpty) stream.end(body);
      stream.once("finish", () => endRequest(stream));
    },
    // Only the end of the stream shows that the body is complete.
    bodyAtHand: () => undefined,
    receive({ maxBytes, timeoutMs }, done) {
      const timer = setTimeout(() => stream.close(constants.NGHTTP2_CANCEL), timeoutMs);
      receive(stream, maxBytes, (body) => {
        clearTimeout(timer);
        done(body);
      });
    },
    send({ status, headers: answerHeaders, body, trailers }) {
      if (stream.closed || stream.destroyed) return;
      const options = trailers === undefined ? {} : { waitForTrailers: true };
      if (trailers !== undefined) {
        stream.once("wantTrailers", () => stream.sendTrailers({ ...trailers }));
      }
      const endStream = body.length === 0 && trailers === undefined;
      stream.respond({ ":status": status, ...answerHeaders }, { ...options, endStream });
      if (!endStream) stream.end(body);
      stream.once("finish", () => endRequest(stream));
    },
    begin({ status, headers: answerHeaders, waitForTrailers }) {
      if (stream.closed || stream.destroyed) return undefined;
      stream.respond({ ":status": status, ...answerHeaders }, { waitForTrailers });
      if (!stream.readableEnded) stream.once("finish", () => endRequest(stream));
      return stream;
    },
    open() {
      const request = new Http2ServerRequest(stream, headers, {}, rawHeaders);
      // Without a body, the stream has already emitted `end`, which the new request has missed.
      if (stream.readableEnded) request.push(null);
      const response = new Http2ServerResponse(stream);
      stream.once("finish", () => endRequest(stream));
      if (headers.expect === "100-continue") response.writeContinue();
      return { request, response };
    },
  };
}

/** Discards the rest of the body: the next request on the connection waits behind it. */
function finishReading(request: IncomingMessage): void {
  if (!request.readableEnded) request.on("error", ignore).resume();
}

const ignore = () => {};

/** See `RequestHead.bodyAtHand`. */
export function bodyAtHand(request: IncomingMessage, maxBytes: number): Buffer | undefined {
  const { complete, destroyed, readableLength } = request;
  if (!complete || destroyed || readableLength > maxBytes) return undefined;
  return request.read() ?? Buffer.alloc(0);
}

function receive(
  source: IncomingMessage | ServerHttp2Stream,
  maxBytes: number,
  done: (body: Received) => void,
): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // The request has no body, and its `end` event was emitted before anything listened.
  if (source.readableEnded) {
    done(Buffer.alloc(0));
    return;
  }
  const onData = (chunk: Buffer) => {
    bytes += chunk.length;
    chunks.push(chunk);
    if (bytes > maxBytes) settle("too-large");
  };
  const onEnd = () => settle(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks));
  const onGone = () => settle("gone");
  // Remove all listeners, so that a response that lasts long, such as a watch, retains none of
  // this.
  const settle = (result: Received) => {
    source.off("data", onData).off("end", onEnd).off("close", onGone).off("error", onGone);
    source.on("error", ignore);
    // Discard the rest of the body.
    source.resume();
    done(result);
  };
  source.on("data", onData).on("end", onEnd).on("close", onGone).on("error", onGone);
}

/** How long a client has to end its request itself after the response was sent. */
const closeAfterMs = 1_000;

/**
 * Resets a request that was answered before its end, since its client may go on sending (RFC 9113,
 * section 8.1). Some clients take a reset that arrives with the response for a failure, so it
 * waits.
 */
function endRequest(stream: ServerHttp2Stream): void {
  if (stream.closed || stream.readableEnded) return;
  const timer = setTimeout(() => stream.close(constants.NGHTTP2_NO_ERROR), closeAfterMs);
  stream.on("close", () => clearTimeout(timer));
}
