import { ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";

/**
 * Sends the headers of a stream's response before its first message. Connect waits for that
 * message, so that handlers can still add headers. A watch adds none, and its caller needs the
 * headers to see that the watch has begun. The status of a stream is 200 in every protocol, however
 * the stream ends.
 */
export function sendHeaders(response: ServerResponse | Http2ServerResponse, header: Headers): void {
  if (response.headersSent || response.writableEnded) return;
  for (const [name, value] of header) response.setHeader(name, value);
  // Connect would write the same headers again with the first message: make that a no-op.
  if (response instanceof ServerResponse) {
    response.flushHeaders();
    response.writeHead = () => response;
  } else {
    response.writeHead(200);
    response.writeHead = () => response;
  }
}
