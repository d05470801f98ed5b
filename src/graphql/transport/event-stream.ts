import type { ExecutionResult } from "graphql";
import { cutUnlessRead, drained } from "../../live/reader.ts";
import { headOf, mappings } from "../errors.ts";
import type { Delivery, Live } from "../live.ts";
import { graphqlType, jsonType } from "./accept.ts";
import { type Answer, type EventStream, encode } from "./answer.ts";
import { graphqlEvents, type StreamFormat } from "./stream-format.ts";

export function streamHeaders({ contentType }: Pick<StreamFormat<never>, "contentType">) {
  return {
    "content-type": contentType,
    // A proxy that compresses or buffers responses would hold events back.
    "cache-control": "no-store, no-transform",
    "x-accel-buffering": "no",
  };
}

/**
 * A single result in the form of an event stream: of a query, or of what failed to be a
 * subscription. It follows the protocol of graphql-sse (distinct connections), as do the streams.
 */
export function resultAsEvents(result: ExecutionResult, method: string | undefined): Answer {
  const format = graphqlEvents;
  const isGet = method === "GET";
  const hasFailed = result.errors !== undefined && !result.data;
  // By graphql-sse: 200 with the error in the stream, or another status if the request failed. An
  // EventSource is told by any other status that a retry is useless.
  const { status, headers } = encode(result, isGet ? graphqlType : jsonType);
  const { "Content-Type": _, ...others } = headers;
  const reconnects = isGet && retryableStatuses.has(status);
  const item = format.item(result, hasFailed ? { failure: { error: undefined } } : {});
  const body = format.begin({}) + item + (reconnects ? "" : format.complete);
  if (reconnects || status === 200) return { status: 200, headers: streamHeaders(format), body };
  return { status, headers: { ...others, ...streamHeaders(format) }, body };
}

const retryableStatuses = new Set(
  Object.values(mappings)
    .filter(({ retryable }) => retryable)
    .map(({ status }) => status),
);

interface Beginning<Item> {
  readonly live: Live;
  /** Makes of a delivery what the format writes. */
  readonly show: (delivery: Delivery) => Item | Promise<Item>;
  readonly format: StreamFormat<Item>;
  /** Whether the client reconnects by itself, as an EventSource does. */
  readonly reconnects: boolean;
}

/**
 * Begins the response to a subscription or a plain watch: waits until the stream has opened or
 * failed, on which the response's head depends. Each event has its cursor as `id`. An EventSource
 * gives up after any status but 200, so it gets another one only if a retry is useless. It
 * reconnects after the end of a response, so it gets 204 if the stream was over at its
 * `Last-Event-ID`.
 */
export async function beginStream<Item>(beginning: Beginning<Item>): Promise<Answer> {
  const { live, reconnects, format } = beginning;
  const first = live[Symbol.asyncIterator]().next();
  await Promise.race([live.opened, first]);
  // Without `Last-Event-ID`, a stream that is over already is answered with the format's
  // `complete` block, if it has one; else with 204.
  const isTold = live.lastEventId === undefined && format.complete !== "";
  if (!live.isOpen && !isTold && (await first).done) {
    return { status: 204, headers: {}, body: undefined };
  }
  const failure = live.isOpen ? undefined : live.failure && headOf(live.failure.error);
  const isFinal = reconnects && failure && !failure.retryable;
  return {
    status: isFinal ? failure.status : 200,
    headers: { ...streamHeaders(format), ...(isFinal && failure.headers) },
    body: writeStream(beginning, first),
  };
}

/**
 * Writes the stream as fast as its client reads it, with heartbeats while it is silent. An event
 * that arrives while the next one is awaited is written in the call that stores it. If the stream
 * fails and the client does not read on to receive the error, the connection is cut.
 */
function writeStream<Item>(
  { live, show, reconnects, format }: Beginning<Item>,
  first: Promise<IteratorResult<Delivery, void>>,
): EventStream {
  return async (response, heartbeats) => {
    const deliveries = live[Symbol.asyncIterator]();
    const beats = heartbeats.add(() => {
      if (!response.destroyed && !response.writableNeedDrain) response.write(format.heartbeat);
    });
    const write = async (block: string) => {
      if (response.destroyed) return;
      beats.spoke();
      if (!response.write(block)) await drained(response);
    };
    const isUnread = () => response.writableLength > 0;
    void live.failing.then(() => cutUnlessRead(isUnread, () => response.destroy()));
    try {
      await write(format.begin(live));
      // Events may be pushed only after the first block.
      live.push = (event) => {
        const { socket } = response;
        if (!socket || socket.destroyed || socket.writableNeedDrain) return false;
        const chunk = response.chunkedEncoding ? format.pushed(event, live) : undefined;
        if (!chunk) return false;
        beats.spoke();
        socket.write(chunk);
        return true;
      };
      for (let next = await first; !next.done; next = await deliveries.next()) {
        await write(format.item(await show(next.value), live));
        if (response.destroyed) return;
      }
      // Without `complete`, an EventSource reconnects, and resumes behind the last `id`.
      const comesBack = reconnects && live.failure && headOf(live.failure.error).retryable;
      if (format.complete && !comesBack) await write(format.complete);
      response.end();
      await drained(response);
    } finally {
      beats.stop();
      await deliveries.return();
    }
  };
}
