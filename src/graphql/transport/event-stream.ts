import type { ExecutionResult } from "graphql";
import type { Plugin } from "graphql-yoga";
import { GatewayError } from "../../errors.ts";
import type { Event } from "../../gen/payments/v1/event_pb.ts";
import type { Context, Surroundings } from "../context.ts";
import { mappings } from "../errors.ts";
import type { Live } from "../live.ts";
import {
  eventStreamType,
  graphqlEvents,
  multipartResults,
  type StreamFormat,
} from "./stream-format.ts";

/** A live stream as the body of one answer. */
export interface EventStream {
  readonly blocks: AsyncGenerator<string, void>;
  readonly heartbeat: string;
  readonly live: Live;
  /**
   * The block of an event that is written past `blocks`, while the next one of them is waited for: as a
   * chunk of the body, which goes to the connection itself.
   */
  readonly pushed: (event: Event) => Buffer | undefined;
}

/**
 * Answers with Server-Sent Events: the protocol of graphql-sse (distinct connections), and besides
 * what an EventSource needs that connects again by itself. Each event has its cursor as `id`. Since
 * an EventSource takes any other status than 200 for the end, GETs get one only when to try again
 * is of no use; and since it takes the end of an answer for a broken connection, it is told that a
 * stream was over with `Last-Event-ID` by 204. Subscriptions of Apollo's clients are answered with
 * parts. The blocks are left to `take` to be sent.
 */
export function answersEventStreams(
  take: (surroundings: Surroundings, stream: EventStream) => void,
): Plugin<Context, Surroundings> {
  return {
    onResultProcess({ request, result, serverContext, setResultProcessor }) {
      if (Array.isArray(result)) return;
      const { live } = serverContext;
      const accept = request.headers.get("accept") ?? "*/*";
      const format = formatOf(accept, isIterable(result as Result));
      if (!format) return;
      const reconnects = request.method === "GET" && format === graphqlEvents;
      setResultProcessor(async (processed, { Response }) => {
        const results = resultsOf(processed as Result);
        const { status, stream } = await beginStream({
          ...{ results, live, reconnects, format },
          opens: isIterable(processed as Result),
          failureOf: failureOfResult,
        });
        if (!stream) return new Response(null, { status });
        take(serverContext, stream);
        return new Response(null, { status, headers: streamHeaders(format) });
      }, mediaTypeOf(format));
    },
  };
}

type Result = ExecutionResult | AsyncIterable<ExecutionResult>;

/** Begins the answer to a subscription; see `beginStream`. */
export function beginSubscription(
  results: AsyncIterator<ExecutionResult>,
  live: Live,
  format: StreamFormat<ExecutionResult>,
  method: string | undefined,
) {
  return beginStream({
    ...{ results, live, format, failureOf: failureOfResult },
    reconnects: method === "GET" && format === graphqlEvents,
    opens: true,
  });
}

export function streamHeaders({ contentType }: Pick<StreamFormat<never>, "contentType">) {
  return {
    "content-type": contentType,
    // A proxy that compresses or collects what it passes on would keep events to itself.
    "cache-control": "no-store, no-transform",
    "x-accel-buffering": "no",
  };
}

function mediaTypeOf({ contentType }: StreamFormat<ExecutionResult>): string {
  return contentType.split(";", 1)[0] as string;
}

/** Whether a request takes a subscription by the parts of Apollo's clients. */
export function takesParts(accept: string): boolean {
  return typesOf(accept).find(isStreamType) === multipartType;
}

/** What is no stream goes as one only to those who take nothing else. */
export function formatOf(
  accept: string,
  isStream: boolean,
): StreamFormat<ExecutionResult> | undefined {
  const types = typesOf(accept);
  if (!isStream) {
    const only = types.every((type) => type === eventStreamType || type === "text/*");
    return only ? graphqlEvents : undefined;
  }
  if (takesParts(accept)) return multipartResults;
  return types.some((type) => eventStreamTypes.has(type)) ? graphqlEvents : undefined;
}

/** The media types of a header, of which that for parts has its parameter. */
function typesOf(accept: string): string[] {
  return accept.split(",").map((each) => {
    const [type = "", ...parameters] = each.split(";").map((text) => text.trim().toLowerCase());
    const forSubscriptions = parameters.some((text) => /^subscriptionspec="?1\.0"?$/.test(text));
    return type === "multipart/mixed" && forSubscriptions ? multipartType : type;
  });
}

const multipartType = "multipart/mixed;subscriptionspec=1.0";
const eventStreamTypes = new Set([eventStreamType, "text/*", "*/*"]);

function isStreamType(type: string): boolean {
  return type === multipartType || type === eventStreamType;
}

function isIterable(result: Result): result is AsyncIterable<ExecutionResult> {
  return Symbol.asyncIterator in result;
}

function resultsOf(result: Result): AsyncIterator<ExecutionResult> {
  return isIterable(result) ? result[Symbol.asyncIterator]() : once(result);
}

async function* once(result: ExecutionResult): AsyncGenerator<ExecutionResult, undefined> {
  yield result;
}

interface Beginning<Item> {
  readonly results: AsyncIterator<Item>;
  readonly live: Live;
  readonly format: StreamFormat<Item>;
  /** The client comes again by itself, as an EventSource does. */
  readonly reconnects: boolean;
  /** It is a stream, and no single answer in the form of one. */
  readonly opens: boolean;
  /** Why an item of a stream that has not begun is no stream. */
  readonly failureOf: (item: Item | undefined) => Failure | undefined;
}

/** Waits until it is known whether there is a stream at all, which the status tells. */
export async function beginStream<Item>(
  beginning: Beginning<Item>,
): Promise<{ status: number; stream?: EventStream }> {
  const { results, live, reconnects, format, opens } = beginning;
  const first = results.next();
  first.catch(() => undefined);
  if (opens) {
    await Promise.race([live.opened, first.then(nothing, nothing)]);
    // Of those that a stream has words for, who asks for the first time is told by them.
    const isTold = live.lastEventId === undefined && format.complete !== "";
    if (!live.isOpen && !isTold && (await first).done) return { status: 204 };
  }
  const failed = live.isOpen ? undefined : failureIn((await first).value, beginning);
  const stream: EventStream = {
    blocks: blocksOf(beginning, first),
    heartbeat: format.heartbeat,
    live,
    pushed: (event) => format.pushed(event, live),
  };
  if (!failed) return { status: 200, stream };
  const forEventSource = failed.retryable ? 200 : failed.status;
  return { status: reconnects ? forEventSource : failed.protocolStatus, stream };
}

const nothing = () => undefined;

export interface Failure {
  readonly status: number;
  readonly retryable: boolean;
  /** The protocol has the errors of operations in the stream, and a status for those of requests. */
  readonly protocolStatus: number;
}

/** Why there is no data, and no stream behind it. */
function failureIn<Item>(item: Item | undefined, { live, failureOf }: Beginning<Item>) {
  return live.failure ? mappingOf(live.failure.error) : failureOf(item);
}

function failureOfResult(result: ExecutionResult | undefined): Failure | undefined {
  if (!result?.errors || result.data) return undefined;
  const https = result.errors.map(({ extensions }) => extensions.http);
  const status = Math.max(...https.map((http) => http?.status ?? 400));
  const protocolStatus = Math.max(...https.map((http) => (http?.spec ? 200 : http?.status) ?? 200));
  return { status, retryable: retryableStatuses.has(status), protocolStatus };
}

/** What an error is to an EventSource. */
export function mappingOf(error: unknown): Failure {
  const { status, retryable } = mappings[error instanceof GatewayError ? error.code : "INTERNAL"];
  return { status, retryable, protocolStatus: 200 };
}

const retryableStatuses = new Set(
  Object.values(mappings)
    .filter(({ retryable }) => retryable)
    .map(({ status }) => status),
);

async function* blocksOf<Item>(
  beginning: Beginning<Item>,
  first: Promise<IteratorResult<Item>>,
): EventStream["blocks"] {
  const { results, live, reconnects, format } = beginning;
  try {
    yield format.begin(live);
    let failed: Failure | undefined;
    for (let next = await first; !next.done; next = await results.next()) {
      failed = live.isOpen
        ? live.failure && mappingOf(live.failure.error)
        : failureIn(next.value, beginning);
      yield format.item(next.value, live, failed !== undefined);
    }
    // Without it, an EventSource comes back, and goes on behind the last `id`.
    if (format.complete && !(reconnects && failed?.retryable)) yield format.complete;
  } finally {
    await results.return?.();
  }
}
