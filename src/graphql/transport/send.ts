import type { ServerResponse } from "node:http";
import type { Push } from "../../core/core.ts";
import { failedStreamMs } from "../../net/unread-answers.ts";
import type { Live } from "../live.ts";
import type { EventStream } from "./event-stream.ts";
import type { Heartbeats } from "./heartbeats.ts";

/** Writes a fetch `Response` to the client. */
export async function sendResponse(answer: Response, response: ServerResponse): Promise<void> {
  if (response.destroyed) return;
  writeHead(answer, response);
  response.end(await answer.text());
}

/**
 * Writes an event stream as fast as its client reads it, with heartbeats while it is silent. An
 * event that arrives while the next block is awaited is written in the call that stores it. If the
 * stream fails and the client does not read on to receive the error, the connection is cut. The
 * stream must end by itself when the client leaves.
 */
export async function sendEventStream(
  answer: Head,
  { blocks, heartbeat, live, pushed }: EventStream,
  response: ServerResponse,
  heartbeats: Heartbeats,
): Promise<void> {
  if (response.destroyed) return void (await blocks.return());
  writeHead(answer, response);
  const beats = heartbeats.add(() => {
    if (!response.destroyed && !response.writableNeedDrain) response.write(heartbeat);
  });
  const stopCutting = cutIfUnread(response, live);
  const push: Push = (event) => {
    const { socket } = response;
    if (!socket || socket.destroyed || socket.writableNeedDrain) return false;
    const chunk = response.chunkedEncoding ? pushed(event) : undefined;
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

/** Resolves when everything written has left this process, or the connection is closed. */
async function drained(response: ServerResponse): Promise<void> {
  if (response.closed) return;
  await new Promise<void>((resolve) => {
    const done = () => {
      response.off("drain", done).off("close", done);
      resolve();
    };
    response.once("drain", done).once("close", done);
  });
}

/** Status and headers of a response, such as a fetch `Response`. */
interface Head {
  readonly status: number;
  readonly headers: Iterable<readonly [name: string, value: string]>;
}

function writeHead(answer: Head, response: ServerResponse): void {
  response.statusCode = answer.status;
  for (const [name, value] of answer.headers) {
    if (name === "vary") response.appendHeader(name, value);
    else response.setHeader(name, value);
  }
}

function cutIfUnread(response: ServerResponse, live: Live): () => void {
  let timer: NodeJS.Timeout | undefined;
  live.onFailing = () => {
    timer = setTimeout(() => {
      if (response.writableLength > 0) response.destroy();
    }, failedStreamMs);
  };
  if (live.isFailing) live.onFailing();
  return () => {
    live.onFailing = undefined;
    clearTimeout(timer);
  };
}
