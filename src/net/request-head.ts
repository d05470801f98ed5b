import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { constants, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Body, Outlet } from "./intake.ts";

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
  /** Answers without reading the request's body. */
  answer(answer: HttpResponse): void;
  /** Its body, whose bytes count from the first one on. */
  readonly body: Body;
  /**
   * Answers a request whose body was received or is not needed. Has no effect if the client has
   * left.
   */
  send(answer: HttpResponse): void;
  /**
   * Begins a response that is written piece by piece, under the same conditions; undefined if the
   * client has left. Over HTTP/1.1 the headers may wait for the first piece. With
   * `waitForTrailers`, the stream emits `wantTrailers` at its end (HTTP/2).
   */
  begin(answer: BegunResponse): Outlet | undefined;
}

/** Why a request is refused because of its headers; undefined if it is not. */
export type Misdirection = (
  headers: IncomingHttpHeaders,
) => { readonly status: number; readonly message: string } | undefined;

/** Whether a `Host` or `:authority` names a host as a URL can, and nothing else (RFC 9110, 7.2). */
export function isAuthority(text: string): boolean {
  if (text === knownAuthority) return true;
  if (/[\s/?#@\\]/.test(text) || !URL.canParse(`http://${text}`)) return false;
  knownAuthority = text;
  return true;
}

/** The last one that was one: nearly all requests have the same. */
let knownAuthority: string | undefined;

export interface HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** A string is written as UTF-8, over HTTP/1.1 in one write with the headers if possible. */
  readonly body: Uint8Array | string;
  readonly trailers?: Readonly<Record<string, string>> | undefined;
}

export function emptyResponse(status: number, headers: HttpResponse["headers"] = {}): HttpResponse {
  return { status, headers, body: "" };
}

export interface BegunResponse extends Pick<HttpResponse, "status" | "headers"> {
  readonly waitForTrailers?: boolean;
  /** The request's body is read beside the answer (HTTP/2). Else its rest is discarded. */
  readonly readsOn?: boolean;
  /** Nothing follows. */
  readonly endStream?: boolean;
}

/** @param isLast whether the connection is to be closed after an answer that begins now */
export function headOfHttp1(
  request: IncomingMessage,
  response: ServerResponse,
  body: Body,
  ending?: AbortSignal,
  isLast = () => false,
): RequestHead {
  const head: RequestHead = {
    method: request.method ?? "",
    httpVersion: "1.1",
    url: request.url ?? "",
    headers: request.headers,
    connection: request.socket,
    ending,
    isGone: () => request.socket.destroyed,
    // `close` is emitted only once: `on` saves the wrapper that `once` would keep.
    onClose: (callback) => void response.on("close", callback),
    answer(answer) {
      body.discard();
      head.send(answer);
    },
    body,
    send({ status, headers, body: content, trailers }) {
      if (!head.begin({ status, headers })) return;
      if (trailers) response.addTrailers(trailers);
      // Node writes a string together with the headers. As latin1, an ASCII text needs no encoding.
      if (typeof content !== "string") response.end(content);
      else {
        const isAscii = headers["content-length"] === `${content.length}`;
        response.end(content, isAscii ? "latin1" : "utf8");
      }
    },
    begin({ status, headers }) {
      if (response.destroyed) return undefined;
      if (!request.readableEnded) body.discard();
      if (isLast()) response.shouldKeepAlive = false;
      return response.writeHead(status, headers);
    },
  };
  return head;
}

export function headOfHttp2(
  stream: ServerHttp2Stream,
  session: ServerHttp2Session,
  headers: IncomingHttpHeaders,
  body: Body,
  ending?: AbortSignal,
): RequestHead {
  const head: RequestHead = {
    method: headers[":method"]?.toString() ?? "",
    httpVersion: "2",
    url: headers[":path"]?.toString() ?? "",
    headers,
    connection: session,
    ending,
    isGone: () => stream.closed || stream.destroyed,
    onClose: (callback) => void stream.on("close", callback),
    answer(answer) {
      body.discard();
      // Not at once: the parser reads on in this turn, and would let in a stream for each answer.
      setImmediate(() => head.send(answer));
    },
    body,
    send({ status, headers, body: content, trailers }) {
      const waitForTrailers = trailers !== undefined;
      // gRPC clients read headers as trailers only if these headers end the stream.
      const endStream = content.length === 0 && !waitForTrailers;
      if (!head.begin({ status, headers, waitForTrailers, endStream })) return;
      if (trailers) stream.once("wantTrailers", () => stream.sendTrailers({ ...trailers }));
      if (!endStream) stream.end(content);
    },
    begin({ status, headers, waitForTrailers = false, readsOn = false, endStream = false }) {
      if (!stream.readableEnded && !readsOn) body.discard();
      if (stream.closed || stream.destroyed) return undefined;
      stream.respond({ ":status": status, ...headers }, { waitForTrailers, endStream });
      if (!stream.readableEnded) {
        stream.once("finish", () => {
          body.discard();
          endRequest(stream);
        });
      }
      return stream;
    },
  };
  return head;
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
