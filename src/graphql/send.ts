import { once } from "node:events";
import type { ServerResponse } from "node:http";

/**
 * Writes a fetch Response out. A stream is read as fast as its client takes it, and cancelled when
 * the client goes away, also while it waits for either side.
 */
export async function sendResponse(answer: Response, response: ServerResponse): Promise<void> {
  if (response.destroyed) {
    await answer.body?.cancel();
    return;
  }
  response.statusCode = answer.status;
  for (const [name, value] of answer.headers) {
    if (name === "vary") response.appendHeader(name, value);
    else response.setHeader(name, value);
  }
  if (answer.headers.get("content-type") !== "text/event-stream" || !answer.body) {
    response.end(await answer.text());
    return;
  }
  const reader = answer.body.getReader();
  const closed = once(response, "close").then(() => reader.cancel());
  const next = () => Promise.race([reader.read(), closed.then(() => ({ done: true as const }))]);
  response.flushHeaders();
  for (let chunk = await next(); !chunk.done; chunk = await next()) {
    if (!response.write(chunk.value)) await Promise.race([once(response, "drain"), closed]);
  }
  response.end();
}
