import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Stream } from "node:http2";

/** A request of either HTTP, and its answer. */
export type Request = IncomingMessage | Http2ServerRequest;
export type Response = ServerResponse | Http2ServerResponse;

/** What the body of an answer is written to. */
export type Outlet = ServerResponse | ServerHttp2Stream;
