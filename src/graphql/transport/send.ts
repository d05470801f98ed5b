import type { ServerResponse } from "node:http";
import type { Push } from "../../core/core.ts";
import type { Heartbeats } from "../../live/heartbeats.ts";
import { drained } from "../../live/reader.ts";
import { turnEnd } from "../../net/turn-end.ts";
import type { Answer, EventStream } from "./event-stream.ts";

/** Writes an answer: a text together with those of other requests, an event stream as it comes. */
export async function sendAnswer(
  { status, headers, body }: Answer,
  response: ServerResponse,
  heartbeats: Heartbeats,
): Promise<void> {
  if (typeof body === "object") {
    return sendEventStream({ status, headers }, body, response, heartbeats);
  }
  await turnEnd();
  if (response.destroyed) return;
  if (!body) return void response.writeHead(status, headers).end();
  // With the length set, Node writes the head and a text body to the socket in one piece.
  const bytes = Buffer.byteLength(body);
  response.writeHead(status, { ...headers, "content-length": bytes });
  response.end(body, bytes === body.length ? "latin1" : "utf8");
}

/**
 * Writes an event stream as fast as its client reads it, with heartbeats while it is silent. An
 * event that arrives while the next block is awaited is written in the call that stores it. If the
 * stream fails and the client does not read on to receive the error, the connection is cut. The
 * stream must end by itself when the client leaves.
 */
async function sendEventStream(
  { status, headers }: Omit<Answer, "body">,
  { blocks, format, live }: EventStream,
  response: ServerResponse,
  heartbeats: Heartbeats,
): Promise<void> {
  if (response.destroyed) return;
  response.writeHead(status, headers);
  const beats = heartbeats.add(() => {
    if (!response.destroyed && !response.writableNeedDrain) response.write(format.heartbeat);
  });
  const stopCutting = live.cutUnlessRead(
    () => response.writableLength > 0,
    () => response.destroy(),
  );
  const push: Push = (event) => {
    const { socket } = response;
    if (!socket || socket.destroyed || socket.writableNeedDrain) return false;
    const chunk = response.chunkedEncoding ? format.pushed(event, live) : undefined;
    if (!chunk) return false;
    beats.spoke();
    socket.write(chunk);
    return true;
  };
  try {
    for await (const block of blocks) {
      if (response.destroyed) return;
      beats.spoke();
      if (!response.write(block)) await drained(response);
      // Events may be pushed only after the first block.
      live.push ??= push;
    }
    response.end();
    await drained(response);
  } finally {
    beats.stop();
    stopCutting();
  }
}
