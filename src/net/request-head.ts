import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import {
  constants,
  Http2ServerRequest,
  Http2ServerResponse,
  type ServerHttp2Stream,
} from "node:http2";
import type { Outlet, Request, Response } from "./request.ts";

/**
 * What is there of a request when its headers have come. Most of what a request costs is spent on what
 * is made of it to read and answer it, so nothing is before somebody wants to serve it.
 */
export interface RequestHead {
  readonly method: string;
  readonly httpVersion: "1.1" | "2";
  /** With its query. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** What the request shares with others of its connection. */
  readonly connection: object;
  /** Aborts when the streams of the connection are to end, because it has reached its age. */
  readonly ending: AbortSignal | undefined;
  /** Its client has left already. */
  isGone(): boolean;
  /** Calls back when the request is over, however it ends. */
  onClose(callback: () => void): void;
  /** Answers with what is ready, whatever the body is; instead of `open`. */
  answer(status: number, headers: Readonly<Record<string, string>>, body?: Uint8Array): void;
  /**
   * The whole body, if it has come with the headers, as most do: it is read then, without anybody
   * who waits. Undefined for one that is to be received, or is longer than `maxBytes`.
   */
  bodyAtHand(maxBytes: number): Buffer | undefined;
  /**
   * Reads the whole body. Calls back once: with the body, with `too-large` as soon as it is over
   * `maxBytes` (the rest is thrown away), or with `gone` when its client left before its end, or took
   * longer than `timeoutMs`.
   */
  receive(limits: BodyLimits, done: (body: Received) => void): void;
  /**
   * Answers a request whose body was received, or will never be asked for. Trailers are of HTTP/2
   * alone. Nothing happens when the client has left.
   */
  send(answer: HttpResponse): void;
  /**
   * Begins an answer that is written piece by piece: the same for it. Over HTTP/1.1 the head may wait
   * for the first piece. With `waitForTrailers`, trailers are asked for at the end (HTTP/2).
   */
  begin(answer: BegunResponse): Outlet | undefined;
  /** What the body is read from and the answer is written to, for everything that takes Node's own. */
  open(): { readonly request: Request; readonly response: Response };
}

/** Whom a request says it is for, where that is a plain name or address; the rest is for the libraries. */
export const plainAuthority = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i;

export type Received = Buffer | "too-large" | "gone";

export interface BodyLimits {
  readonly maxBytes: number;
  readonly timeoutMs: number;
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** A text is written as UTF-8, with its head in one piece where HTTP/1.1 lets it. */
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
    // Closing comes once: nothing is kept to tell.
    onClose: (callback) => void response.on("close", callback),
    answer(status, headers, body) {
      // The next request on the connection waits behind the body of this one.
      request.on("error", () => {}).resume();
      response.writeHead(status, headers).end(body);
    },
    bodyAtHand: (maxBytes) => bodyAtHand(request, maxBytes),
    // How long it may take, Node's server sees to.
    receive: ({ maxBytes }, done) => receive(request, maxBytes, done),
    send({ status, headers, body }) {
      finishReading(request);
      response.writeHead(status, headers);
      // Node writes a text and its head as one, for which latin1 needs no encoding.
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
      // gRPC clients take headers for trailers only where they end the stream.
      stream.respond({ ":status": status, ...answerHeaders }, { endStream: isEmpty });
      if (!isEmpty) stream.end(body);
      stream.once("finish", () => endRequest(stream));
    },
    // Whether the rest of a stream is empty, its end tells alone.
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
      // A request without a body has come to its end, of which only those are told who hear it.
      if (stream.readableEnded) request.push(null);
      const response = new Http2ServerResponse(stream);
      stream.once("finish", () => endRequest(stream));
      if (headers.expect === "100-continue") response.writeContinue();
      return { request, response };
    },
  };
}

/** The next request on the connection waits behind the body of this one. */
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
  // It came without a body, and has told so to nobody.
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
  // A stream of events lasts: nothing is left of this then.
  const settle = (result: Received) => {
    source.off("data", onData).off("end", onEnd).off("close", onGone).off("error", onGone);
    source.on("error", ignore);
    // What is still to come is thrown away.
    source.resume();
    done(result);
  };
  source.on("data", onData).on("end", onEnd).on("close", onGone).on("error", onGone);
}

/** How long a client has to end its request by itself, once it was answered. */
const closeAfterMs = 1_000;

/**
 * Ends a request that was answered before its end, which its client may not notice (RFC 9113, section
 * 8.1). Some take it for a failure when it comes with the answer.
 */
function endRequest(stream: ServerHttp2Stream): void {
  if (stream.closed || stream.readableEnded) return;
  const timer = setTimeout(() => stream.close(constants.NGHTTP2_NO_ERROR), closeAfterMs);
  stream.on("close", () => clearTimeout(timer));
}
