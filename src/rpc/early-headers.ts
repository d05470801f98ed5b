import { ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";

/**
 * Sends the headers of a stream's answer before its first message. Connect waits for that message, so
 * that handlers may still add headers; a watch has none to add, and its caller would not learn that
 * the watch has begun. The status of a stream is 200 in every protocol, however the stream ends.
 */
export function sendHeaders(response: ServerResponse | Http2ServerResponse, header: Headers): void {
  if (response.headersSent || response.writableEnded) return;
  for (const [name, value] of header) response.setHeader(name, value);
  // Connect writes the same headers with the first message: there is nothing left to do for it then.
  if (response instanceof ServerResponse) {
    response.flushHeaders();
    response.writeHead = () => response;
  } else {
    response.writeHead(200);
    response.writeHead = () => response;
  }
}
