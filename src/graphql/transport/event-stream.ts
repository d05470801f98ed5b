import type { ExecutionResult } from "graphql";
import { GatewayError } from "../../errors.ts";
import type { Event } from "../../gen/payments/v1/event_pb.ts";
import { httpOf, mappings, retryAfterSeconds } from "../errors.ts";
import type { Live } from "../live.ts";
import type { Subscribed } from "../operations.ts";
import { graphqlType } from "../overload.ts";
import {
  eventStreamType,
  graphqlEvents,
  multipartResults,
  type StreamFormat,
} from "./stream-format.ts";

/** A live stream as the body of one response. */
export interface EventStream {
  readonly blocks: AsyncGenerator<string, void>;
  readonly heartbeat: string;
  readonly live: Live;
  /**
   * The block of an event as a chunk of HTTP/1.1, to be written to the connection while the next of
   * `blocks` is awaited. Undefined if the event has to come with `blocks`.
   */
  readonly pushed: (event: Event) => Buffer | undefined;
}

/**
 * Begins the response to a subscription, or to what failed to be one. Server-Sent Events follow the
 * protocol of graphql-sse (distinct connections), adapted to an EventSource, which reconnects by
 * itself. Each event has its cursor as `id`. An EventSource gives up after any status but 200, so a
 * GET gets another one only if a retry is useless. It reconnects after the end of a response, so it
 * gets 204 if the stream was over at its `Last-Event-ID`.
 */
export function beginResult(
  result: Subscribed,
  live: Live,
  format: StreamFormat<ExecutionResult>,
  method: string | undefined,
) {
  return beginStream({
    ...{
      results: isStream(result) ? result : once(result),
      live,
      format,
      failureOf: failureOfResult,
    },
    reconnects: method === "GET" && format === graphqlEvents,
    opens: isStream(result),
  });
}

export function streamHeaders({ contentType }: Pick<StreamFormat<never>, "contentType">) {
  return {
    "content-type": contentType,
    // A proxy that compresses or buffers responses would hold events back.
    "cache-control": "no-store, no-transform",
    "x-accel-buffering": "no",
  };
}

/** Whether Apollo's multipart protocol is the first stream type in an `Accept` header. */
export function takesParts(accept: string): boolean {
  return typesOf(accept).find(isStreamType) === multipartType;
}

/**
 * The stream format of a response. A single result has one only if nothing else is accepted. Clients
 * that prefer Apollo's multipart protocol get that.
 */
export function formatOf(
  accept = "*/*",
  isStream = false,
): StreamFormat<ExecutionResult> | undefined {
  const types = typesOf(accept);
  if (!isStream) {
    const only = types.every((type) => type === eventStreamType || type === "text/*");
    return only ? graphqlEvents : undefined;
  }
  if (takesParts(accept)) return multipartResults;
  return types.some((type) => eventStreamTypes.has(type)) ? graphqlEvents : undefined;
}

/** The media type of a single result: JSON, unless another type of GraphQL is accepted before it. */
export function resultTypeOf(accept = "*/*"): string {
  return typesOf(accept).find((type) => resultTypes.has(type)) === graphqlType
    ? graphqlType
    : jsonType;
}

const jsonType = "application/json";
const resultTypes = new Set([graphqlType, jsonType, "application/*", "*/*"]);

/**
 * The media types of an `Accept` header without parameters, except for Apollo's multipart type. The
 * header is read before the caller is known: of a long one only its beginning.
 */
function typesOf(accept: string): string[] {
  return accept.split(",", maxTypes).map((each) => {
    const [type = "", ...parameters] = each
      .split(";", maxParameters)
      .map((text) => text.trim().toLowerCase());
    const forSubscriptions = parameters.some((text) => /^subscriptionspec="?1\.0"?$/.test(text));
    return type === "multipart/mixed" && forSubscriptions ? multipartType : type;
  });
}

/** Browsers send up to a dozen types, with one or two parameters. */
const maxTypes = 32;
const maxParameters = 8;

const multipartType = "multipart/mixed;subscriptionspec=1.0";
const eventStreamTypes = new Set([eventStreamType, "text/*", "*/*"]);

function isStreamType(type: string): boolean {
  return type === multipartType || type === eventStreamType;
}

export function isStream(result: Subscribed): result is AsyncIterableIterator<ExecutionResult> {
  return Symbol.asyncIterator in result;
}

/** A single result in the format of a stream. */
async function* once(result: ExecutionResult): AsyncGenerator<ExecutionResult, undefined> {
  yield result;
}

interface Beginning<Item> {
  readonly results: AsyncIterator<Item>;
  readonly live: Live;
  readonly format: StreamFormat<Item>;
  /** Whether the client reconnects by itself, as an EventSource does. */
  readonly reconnects: boolean;
  /** Whether it is a stream, rather than a single result in the format of one. */
  readonly opens: boolean;
  /** The failure in an item of a stream that has not opened; undefined if there is none. */
  readonly failureOf: (item: Item | undefined) => Failure | undefined;
}

/** The head of a response, and its body if it has one. */
export interface Begun {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly stream?: EventStream;
}

/** Waits until the stream has opened or failed, on which the response's head depends. */
export async function beginStream<Item>(beginning: Beginning<Item>): Promise<Begun> {
  const { results, live, reconnects, format, opens } = beginning;
  const first = results.next();
  first.catch(() => undefined);
  if (opens) {
    await Promise.race([live.opened, first.then(nothing, nothing)]);
    // Without `Last-Event-ID`, a stream that is over already is answered with the format's
    // `complete` block, if it has one; else with 204.
    const isTold = live.lastEventId === undefined && format.complete !== "";
    if (!live.isOpen && !isTold && (await first).done) return { status: 204, headers: {} };
  }
  const failed = live.isOpen ? undefined : failureIn((await first).value, beginning);
  const stream: EventStream = {
    blocks: blocksOf(beginning, first),
    heartbeat: format.heartbeat,
    live,
    pushed: (event) => format.pushed(event, live),
  };
  const headers = streamHeaders(format);
  if (!failed) return { status: 200, headers, stream };
  const forEventSource = failed.retryable ? 200 : failed.status;
  const status = reconnects ? forEventSource : failed.protocolStatus;
  return { status, headers: status === 200 ? headers : { ...headers, ...failed.headers }, stream };
}

const nothing = () => undefined;

export interface Failure {
  readonly status: number;
  readonly retryable: boolean;
  /** By graphql-sse: 200 with the error in the stream, or another status if the request failed. */
  readonly protocolStatus: number;
  /** Those that go with a status other than 200. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The failure of a stream that has not opened; undefined if there is none. */
function failureIn<Item>(item: Item | undefined, { live, failureOf }: Beginning<Item>) {
  return live.failure ? mappingOf(live.failure.error) : failureOf(item);
}

function failureOfResult(result: ExecutionResult | undefined): Failure | undefined {
  if (!result?.errors || result.data) return undefined;
  const https = result.errors.map(({ extensions }) => extensions.http);
  const headers = Object.assign({}, ...https.map((http) => http?.headers));
  const status = Math.max(...https.map((http) => http?.status ?? 400));
  const protocolStatus = Math.max(...https.map((http) => (http?.spec ? 200 : http?.status) ?? 200));
  return { status, retryable: retryableStatuses.has(status), protocolStatus, headers };
}

/** The head for an error, and whether a retry may succeed. */
export function mappingOf(error: unknown): Failure {
  const mapping = mappings[error instanceof GatewayError ? error.code : "INTERNAL"];
  const { status, headers = {} } = httpOf(mapping, retryAfterSeconds(error));
  return { status, retryable: mapping.retryable, protocolStatus: 200, headers };
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
    // Without `complete`, an EventSource reconnects, and resumes behind the last `id`.
    if (format.complete && !(reconnects && failed?.retryable)) yield format.complete;
  } finally {
    await results.return?.();
  }
}
