import { type ExecutionResult, GraphQLError } from "graphql";
import type { Plugin } from "graphql-yoga";
import { GatewayError } from "../../errors.ts";
import type { Context, Surroundings } from "../context.ts";
import { mappings } from "../errors.ts";
import type { Live } from "../live.ts";
import { withoutHttp } from "./formatted-result.ts";

/** The blocks of one answer, as `text/event-stream` has them. */
export type EventStream = AsyncGenerator<string, void>;

export const eventStreamType = "text/event-stream";

/**
 * Answers with Server-Sent Events: the protocol of graphql-sse (distinct connections), and besides
 * what an EventSource needs that connects again by itself. Each event has its cursor as `id`. Since
 * an EventSource takes any other status than 200 for the end, GETs get one only when to try again
 * is of no use; and since it takes the end of an answer for a broken connection, it is told that a
 * stream was over with `Last-Event-ID` by 204. The blocks are left to `take` to be sent.
 */
export function answersEventStreams(
  take: (surroundings: Surroundings, blocks: EventStream) => void,
): Plugin<Context, Surroundings> {
  return {
    onResultProcess({ request, result, serverContext, setResultProcessor }) {
      const { live } = serverContext;
      if (Array.isArray(result) || !isForEventStream(request, result)) return;
      const reconnects = request.method === "GET";
      setResultProcessor(async (processed, { Response }) => {
        const begun = await begin(processed as Result, live, reconnects);
        if (!begun.blocks) return new Response(null, { status: begun.status });
        take(serverContext, begun.blocks);
        return new Response(null, { status: begun.status, headers });
      }, eventStreamType);
    },
  };
}

type Result = ExecutionResult | AsyncIterable<ExecutionResult>;

const headers = {
  "content-type": eventStreamType,
  // A proxy that compresses or collects what it passes on would keep events to itself.
  "cache-control": "no-store, no-transform",
  "x-accel-buffering": "no",
};

/** What is no stream goes as one only to those who take nothing else. */
function isForEventStream(request: Request, result: unknown): boolean {
  const types = (request.headers.get("accept") ?? "*/*")
    .split(",")
    .map((type) => type.split(";", 1)[0]?.trim().toLowerCase() ?? "");
  const wanted = types.filter((type) => eventStreamTypes.has(type));
  return isIterable(result as Result)
    ? wanted.length > 0
    : types.every((type) => type === eventStreamType || type === "text/*");
}

const eventStreamTypes = new Set([eventStreamType, "text/*", "*/*"]);

function isIterable(result: Result): result is AsyncIterable<ExecutionResult> {
  return Symbol.asyncIterator in result;
}

/** Waits until it is known whether there is a stream at all, which the status tells. */
async function begin(
  result: Result,
  live: Live,
  reconnects: boolean,
): Promise<{ status: number; blocks?: EventStream }> {
  const results = isIterable(result) ? result[Symbol.asyncIterator]() : once(result);
  const first = results.next();
  first.catch(() => undefined);
  if (isIterable(result)) {
    await Promise.race([live.opened, first.then(nothing, nothing)]);
    if (!live.isOpen && live.lastEventId !== undefined && (await first).done) {
      return { status: 204 };
    }
  }
  const failed = live.isOpen ? undefined : failureOf((await first).value, live);
  const begun = { first, results, live, reconnects };
  if (!failed) return { status: 200, blocks: blocksOf(begun) };
  const forEventSource = failed.retryable ? 200 : failed.status;
  return { status: reconnects ? forEventSource : failed.protocolStatus, blocks: blocksOf(begun) };
}

const nothing = () => undefined;

async function* once(result: ExecutionResult): AsyncGenerator<ExecutionResult, undefined> {
  yield result;
}

interface Failure {
  readonly status: number;
  readonly retryable: boolean;
  /** The protocol has the errors of operations in the stream, and a status for those of requests. */
  readonly protocolStatus: number;
}

/** Why a result has no data, and no stream behind it. */
function failureOf(result: ExecutionResult | undefined, live: Live): Failure | undefined {
  if (live.failure) return mappingOf(live.failure.error);
  if (!result?.errors || result.data) return undefined;
  const https = result.errors.map(({ extensions }) => extensions.http);
  const status = Math.max(...https.map((http) => http?.status ?? 400));
  const protocolStatus = Math.max(...https.map((http) => (http?.spec ? 200 : http?.status) ?? 200));
  return { status, retryable: retryableStatuses.has(status), protocolStatus };
}

function mappingOf(error: unknown): Failure {
  const { status, retryable } = mappings[error instanceof GatewayError ? error.code : "INTERNAL"];
  return { status, retryable, protocolStatus: 200 };
}

const retryableStatuses = new Set(
  Object.values(mappings)
    .filter(({ retryable }) => retryable)
    .map(({ status }) => status),
);

interface Begun {
  readonly first: Promise<IteratorResult<ExecutionResult>>;
  readonly results: AsyncIterator<ExecutionResult>;
  readonly live: Live;
  readonly reconnects: boolean;
}

async function* blocksOf({ first, results, live, reconnects }: Begun): EventStream {
  try {
    yield `retry: ${reconnectMs(undefined)}\n${idOf(live.start)}\n`;
    let failed: Failure | undefined;
    for (let next = await first; !next.done; next = await results.next()) {
      failed = live.isOpen
        ? live.failure && mappingOf(live.failure.error)
        : failureOf(next.value, live);
      const retry = failed ? `retry: ${reconnectMs(live.failure?.error)}\n` : "";
      yield `${retry}${idOf(live.cursor)}event: next\ndata: ${JSON.stringify(formatted(next.value))}\n\n`;
    }
    // Without it, an EventSource comes back, and goes on behind the last `id`.
    if (!(reconnects && failed?.retryable)) yield "event: complete\ndata:\n\n";
  } finally {
    await results.return?.();
  }
}

/** What never was a cursor could be more than one line. */
function idOf(cursor: string | undefined): string {
  return cursor !== undefined && /^[!-~]+$/.test(cursor) ? `id: ${cursor}\n` : "";
}

function formatted({ errors, ...result }: ExecutionResult) {
  if (!errors) return result;
  return {
    errors: errors.map((e) => (e instanceof GraphQLError ? withoutHttp(e) : e)),
    ...result,
  };
}

const minReconnectMs = 1_000;
const crowdedReconnectMs = 10_000;

/** When to come back: at a moment of its own for each client, so that they do not all come at once. */
function reconnectMs(error: unknown): number {
  const details = error instanceof GatewayError ? error.details : {};
  const crowded = details.reason === "TOO_MANY_STREAMS" ? crowdedReconnectMs : 0;
  const minMs = Math.max(minReconnectMs, crowded, details.retryAfterMs ?? 0);
  return Math.round(minMs * (1 + 2 * Math.random()));
}
