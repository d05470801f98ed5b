import { toJson } from "@bufbuild/protobuf";
import type { ExecutionResult } from "graphql";
import { GatewayError } from "../../errors.ts";
import { type Event, EventSchema } from "../../gen/payments/v1/event_pb.ts";
import { oncePerEvent } from "../../live/once-per-event.ts";
import type { Delivery, Live } from "../live.ts";

/** What a format tells of a stream beside its items. A single result has only its failure. */
type State = Partial<Pick<Live, "start" | "cursor" | "failure">>;

/** How a live stream is written into the body of a response. */
export interface StreamFormat<Item> {
  readonly contentType: string;
  /** The first block of the body. */
  begin(state: State): string;
  /**
   * An event like `item`, but as a chunk of HTTP/1.1 that all its readers share; undefined if it has
   * to be executed for this one.
   */
  pushed(event: Event, live: Live): Buffer | undefined;
  /** With a failure, the item is the error that ended the stream, opened or not. */
  item(item: Item, state: State): string;
  /** Written while the stream is silent. */
  readonly heartbeat: string;
  /** The last block, which marks the end; empty if the format has none. */
  readonly complete: string;
}

export const eventStreamType = "text/event-stream";

/** GraphQL results as Server-Sent Events, by the protocol of graphql-sse (distinct connections). */
export const graphqlEvents: StreamFormat<ExecutionResult> = {
  contentType: eventStreamType,
  begin: beginEvents,
  item: (result, state) => retryOf(state) + nextEvent(JSON.stringify(result), state),
  pushed: (event, { resultOf }) => resultOf?.(event)?.as(nextEventChunk),
  heartbeat: ":\n\n",
  complete: "event: complete\ndata:\n\n",
};

/**
 * Events of a payment or payout as plain Server-Sent Events: `data` is always an event. An error
 * that ends a stream is a comment; the status of an EventSource's next request shows whether to
 * retry.
 * @param messageOf the message of an error as a client may see it
 */
export function plainEvents(messageOf: (error: unknown) => string): StreamFormat<Delivery> {
  const plainEventChunk = oncePerEvent((event) => chunkOf(plainEvent(event)));
  return {
    contentType: eventStreamType,
    begin: beginEvents,
    pushed: plainEventChunk,
    item(delivery, state) {
      if ("event" in delivery) return plainEvent(delivery.event);
      const message = messageOf(delivery.error).replaceAll(/\s+/g, " ");
      return `: ${message}\n${retryOf(state)}${idOf(state.cursor)}\n`;
    },
    heartbeat: ":\n\n",
    complete: "",
  };
}

/**
 * GraphQL results by Apollo's multipart protocol. A client reads a part when the next boundary has
 * arrived, so each part ends with it. An error that ends a stream goes beside `payload`, since it
 * is not a result of the operation.
 */
export const multipartResults: StreamFormat<ExecutionResult> = {
  contentType: 'multipart/mixed;boundary="graphql";subscriptionSpec=1.0',
  begin: () => `--graphql${part({})}`,
  item(result, { failure }) {
    const { errors, ...rest } = result;
    if (failure) return part({ payload: null, errors });
    return part({ payload: { ...rest, ...(errors && { errors }) } });
  },
  pushed: (event, { resultOf }) => resultOf?.(event)?.as(payloadChunk),
  heartbeat: part({}),
  complete: "--\r\n",
};

function payloadChunk(json: string): Buffer {
  return chunkOf(partOf(`{"payload":${json}}`));
}

function part(content: object): string {
  return partOf(JSON.stringify(content));
}

function partOf(json: string): string {
  return `\r\ncontent-type: application/json; charset=utf-8\r\n\r\n${json}\r\n--graphql`;
}

function chunkOf(text: string): Buffer {
  return Buffer.from(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
}

function nextEvent(json: string, { cursor }: Pick<State, "cursor">): string {
  return `${idOf(cursor)}event: next\ndata: ${json}\n\n`;
}

function nextEventChunk(json: string, event: Event): Buffer {
  return chunkOf(nextEvent(json, event));
}

/** Proto JSON leaves out false; a reader without the proto could not tell what `final` is then. */
function plainEvent(event: Event): string {
  const json = JSON.stringify({ ...(toJson(EventSchema, event) as object), final: event.final });
  return `${idOf(event.cursor)}data: ${json}\n\n`;
}

function beginEvents({ start }: State): string {
  return `retry: ${reconnectMs(undefined)}\n${idOf(start)}\n`;
}

function retryOf({ failure }: State): string {
  return failure ? `retry: ${reconnectMs(failure.error)}\n` : "";
}

/** A text from a request that is not a cursor could have several lines: it is left out. */
function idOf(cursor: string | undefined): string {
  return cursor !== undefined && /^[!-~]+$/.test(cursor) ? `id: ${cursor}\n` : "";
}

const leastReconnectMs = 1_000;
const crowdedReconnectMs = 10_000;

/** When a client should reconnect, in milliseconds: random, so that not all do so at once. */
export function reconnectMs(error: unknown): number {
  const details = error instanceof GatewayError ? error.details : {};
  const crowded = details.reason === "TOO_MANY_STREAMS" ? crowdedReconnectMs : 0;
  const least = Math.max(leastReconnectMs, crowded, details.retryAfterMs ?? 0);
  return Math.round(least * (1 + 2 * Math.random()));
}
