import { toJsonString } from "@bufbuild/protobuf";
import { type ExecutionResult, type FormattedExecutionResult, GraphQLError } from "graphql";
import { oncePerEvent } from "../../core/once-per-event.ts";
import { GatewayError } from "../../errors.ts";
import { type Event, EventSchema } from "../../gen/payments/v1/event_pb.ts";
import type { Live } from "../live.ts";
import type { Delivery } from "../schema/stream.ts";
import { withoutHttp } from "./formatted-result.ts";

/** How a live stream is written into the body of an answer. */
export interface StreamFormat<Item> {
  readonly contentType: string;
  /** Says that the stream has found its place. */
  begin(live: Live): string;
  /**
   * An event as `item` has it, but as a chunk of HTTP/1.1, to be written past the engine; undefined if
   * that has to run for it.
   */
  pushed(event: Event, live: Live): Buffer | undefined;
  /** @param failed the item is the error that ended the stream, before or after it was open */
  item(item: Item, live: Live, failed: boolean): string;
  /** Written while there is nothing else. */
  readonly heartbeat: string;
  /** Says that nothing more comes. */
  readonly complete: string;
}

export const eventStreamType = "text/event-stream";

/** GraphQL results as Server-Sent Events, by the protocol of graphql-sse (distinct connections). */
export const graphqlEvents: StreamFormat<ExecutionResult> = {
  contentType: eventStreamType,
  begin: beginEvents,
  item: (result, live, failed) =>
    retryOf(live, failed) + nextEvent(JSON.stringify(formatted(result)), live),
  pushed: (event, { resultOf }) => resultOf?.(event)?.as(nextEventChunk),
  heartbeat: ":\n\n",
  complete: "event: complete\ndata:\n\n",
};

/**
 * Events of a payment or payout as plain Server-Sent Events: `data` is the
 * event and never anything else. What ends a stream is a comment; by its status, the next request of
 * an EventSource is told whether to come again.
 * @param messageOf an error as a client may see it
 */
export function plainEvents(messageOf: (error: unknown) => string): StreamFormat<Delivery> {
  const plainEventChunk = oncePerEvent((event) => chunkOf(plainEvent(event)));
  return {
    contentType: eventStreamType,
    begin: beginEvents,
    pushed: plainEventChunk,
    item(delivery, live, failed) {
      if ("event" in delivery) return plainEvent(delivery.event);
      const { error } = delivery;
      return `: ${messageOf(error).replaceAll(/\s+/g, " ")}\n${retryOf(live, failed)}${idOf(live.cursor)}\n`;
    },
    heartbeat: ":\n\n",
    complete: "",
  };
}

/**
 * GraphQL results by the protocol of Apollo's clients. A part is read when the boundary behind it is
 * there, so that each part brings it along. What ends a stream stands beside `payload`, since it is
 * no answer to the operation.
 */
export const multipartResults: StreamFormat<ExecutionResult> = {
  contentType: 'multipart/mixed;boundary="graphql";subscriptionSpec=1.0',
  begin: () => `--graphql${part({})}`,
  item(result, live) {
    const { errors, ...rest } = formatted(result);
    if (live.failure) return part({ payload: null, errors });
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

function nextEvent(json: string, { cursor }: { readonly cursor: string | undefined }): string {
  return `${idOf(cursor)}event: next\ndata: ${json}\n\n`;
}

function nextEventChunk(json: string, event: Event): Buffer {
  return chunkOf(nextEvent(json, event));
}

function plainEvent(event: Event): string {
  return `${idOf(event.cursor)}data: ${toJsonString(EventSchema, event)}\n\n`;
}

function beginEvents({ start }: Live): string {
  return `retry: ${reconnectMs(undefined)}\n${idOf(start)}\n`;
}

function retryOf({ failure }: Live, failed: boolean): string {
  return failed ? `retry: ${reconnectMs(failure?.error)}\n` : "";
}

/** What never was a cursor could be more than one line. */
function idOf(cursor: string | undefined): string {
  return cursor !== undefined && /^[!-~]+$/.test(cursor) ? `id: ${cursor}\n` : "";
}

function formatted({ errors, ...result }: ExecutionResult): FormattedExecutionResult {
  if (!errors) return result;
  return {
    errors: errors.map((e) => (e instanceof GraphQLError ? withoutHttp(e) : e)),
    ...result,
  };
}

const leastReconnectMs = 1_000;
const crowdedReconnectMs = 10_000;

/** When to come back: at a moment of its own for each client, so that they do not all come at once. */
export function reconnectMs(error: unknown): number {
  const details = error instanceof GatewayError ? error.details : {};
  const crowded = details.reason === "TOO_MANY_STREAMS" ? crowdedReconnectMs : 0;
  const least = Math.max(leastReconnectMs, crowded, details.retryAfterMs ?? 0);
  return Math.round(least * (1 + 2 * Math.random()));
}
