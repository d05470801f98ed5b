import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Stream } from "node:http2";

/** A request of HTTP/1.1 or HTTP/2, and its response. */
export type Request = IncomingMessage | Http2ServerRequest;
export type Response = ServerResponse | Http2ServerResponse;

/** The stream that a response's body is written to. */
export type Outlet = ServerResponse | ServerHttp2Stream;
