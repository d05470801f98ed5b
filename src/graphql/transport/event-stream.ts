import type { OutgoingHttpHeaders } from "node:http";
import type { ExecutionResult } from "graphql";
import { GatewayError } from "../../errors.ts";
import { httpOf, mappings, retryAfterSeconds } from "../errors.ts";
import type { Delivery, Live } from "../live.ts";
import { graphqlEvents, type StreamFormat } from "./stream-format.ts";

/** What answers a request: a whole text, an event stream, or a head alone. */
export interface Answer {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: string | EventStream | undefined;
  /** Whether nothing of the operation still runs. */
  readonly whole?: boolean;
}

/** A live stream as the body of one response. */
export interface EventStream {
  readonly blocks: AsyncGenerator<string, void>;
  readonly format: Pick<StreamFormat<never>, "heartbeat" | "pushed">;
  readonly live: Live;
}

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
  const failure = failureOf(result);
  const reconnects = method === "GET" && failure?.retryable;
  const item = format.item(result, failure ? { failure: { error: undefined } } : {});
  const body = format.begin({}) + item + (reconnects ? "" : format.complete);
  const statusByGet = reconnects ? 200 : failure?.status;
  const status = (method === "GET" ? statusByGet : failure?.protocolStatus) ?? 200;
  const headers = { ...streamHeaders(format), ...(status !== 200 && failure?.headers) };
  return { status, headers, body };
}

/** A result without data; undefined for others. */
function failureOf({ errors, data }: ExecutionResult) {
  if (!errors || data) return undefined;
  const https = errors.map(({ extensions }) => extensions.http);
  const status = Math.max(...https.map((http) => http?.status ?? 400));
  return {
    status,
    /** By graphql-sse: 200 with the error in the stream, or another status if the request failed. */
    protocolStatus: Math.max(...https.map((http) => (http?.spec ? 200 : http?.status) ?? 200)),
    retryable: retryableStatuses.has(status),
    /** Those that go with a status other than 200. */
    headers: Object.assign({}, ...https.map((http) => http?.headers)),
  };
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
  const first = live.next();
  const hasFirst = first.then(nothing, nothing);
  await Promise.race([live.opened, hasFirst]);
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
    body: { blocks: blocksOf(beginning, first), format, live },
  };
}

const nothing = () => undefined;

/** The head of a response that an error fails, and whether a retry may succeed. */
export function headOf(error: unknown) {
  const mapping = mappings[error instanceof GatewayError ? error.code : "INTERNAL"];
  return { ...httpOf(mapping, retryAfterSeconds(error)), retryable: mapping.retryable };
}

async function* blocksOf<Item>(
  { live, show, reconnects, format }: Beginning<Item>,
  first: Promise<IteratorResult<Delivery>>,
): EventStream["blocks"] {
  try {
    yield format.begin(live);
    for (let next = await first; !next.done; next = await live.next()) {
      yield format.item(await show(next.value), live);
    }
    // Without `complete`, an EventSource reconnects, and resumes behind the last `id`.
    const comesBack = reconnects && live.failure && headOf(live.failure.error).retryable;
    if (format.complete && !comesBack) yield format.complete;
  } finally {
    await live.return();
  }
}
