import { Code, ConnectError } from "@connectrpc/connect";
import { createClient as createSseClient } from "graphql-sse";
import { EventService } from "../../src/gen/payments/v1/event_service_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { timeoutMs } from "../until.ts";
import { clientOf, socketClient, type Urls } from "./callers.ts";

/** The error that ends a watch. */
export class WatchEnd extends Error {
  /** As gRPC names it. */
  readonly code: string;
  readonly resumeCursor: string | undefined;

  constructor(code: string, resumeCursor: string | undefined) {
    super(`the watch ended with ${code}`);
    this.code = code;
    this.resumeCursor = resumeCursor;
  }
}

export interface WatchOptions {
  /** Where the stream of all events begins. */
  readonly after?: string;
  readonly token?: string;
  /** It may last for as long as it likes. */
  readonly isEndless?: boolean;
}

/**
 * The cursors of the watch of one payment, or of the stream of all events, by each edge; it ends when
 * `signal` aborts.
 */
type Watch = (
  urls: Urls,
  externalId: string | undefined,
  options: WatchOptions,
  signal: AbortSignal,
) => AsyncGenerator<string>;

const watches = {
  gRPC: byGrpc,
  SSE: byGraphql(({ publicUrl }, headers) =>
    createSseClient({ url: `${publicUrl}/graphql`, retryAttempts: 0, headers }),
  ),
  WebSocket: byGraphql((urls, connectionParams) => socketClient(urls, { connectionParams })),
} satisfies Record<string, Watch>;

const headersOf = (token: string | undefined): Record<string, string> =>
  token ? { authorization: `Bearer ${token}` } : {};

export type Edge = keyof typeof watches;
export const edges = Object.keys(watches) as Edge[];

/** An open watch. */
export type Watching = ReturnType<typeof watch>;

/** Watches a payment, or all without an id. What does not happen in time rejects. */
export function watch(
  by: Edge,
  urls: Urls,
  externalId: string | undefined,
  { isEndless = false, ...options }: WatchOptions = {},
) {
  const leaving = new AbortController();
  const limits = isEndless ? [] : [AbortSignal.timeout(timeoutMs)];
  const signal = AbortSignal.any([leaving.signal, ...limits]);
  const events = watches[by](urls, externalId, options, signal);
  /** The cursor of the next event; undefined if the watch has ended well. @throws WatchEnd */
  const next = async (): Promise<string | undefined> => {
    const { done, value } = await events.next();
    return done ? undefined : value;
  };
  return {
    next,
    /** How the watch ends, once all events before have been read. */
    async ended(): Promise<WatchEnd> {
      try {
        while (await next());
      } catch (error) {
        if (error instanceof WatchEnd) return error;
        throw error;
      }
      throw new Error("the watch ended well");
    },
    async leave() {
      leaving.abort();
      await events.return(undefined).catch(() => {});
    },
  };
}

async function* byGrpc(
  urls: Urls,
  externalId: string | undefined,
  { after = "", token }: WatchOptions,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const options = { headers: headersOf(token), signal };
  try {
    const events =
      externalId === undefined
        ? clientOf(EventService, urls).streamEvents({ afterCursor: after }, options)
        : clientOf(PaymentService, urls).watchPayment({ externalId }, options);
    for await (const { event } of events) if (event) yield event.cursor;
  } catch (thrown) {
    const { code, metadata } = ConnectError.from(thrown);
    const name = Code[code].replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
    throw new WatchEnd(name, metadata.get("x-resume-cursor") ?? undefined);
  }
}

const query = `subscription ($externalId: ID!) {
  seen: paymentUpdated(externalId: $externalId) { cursor }
}`;
const allQuery = "subscription ($after: String) { seen: events(after: $after) { cursor } }";

interface GraphqlClient {
  iterate(asked: { query: string; variables: Record<string, unknown> }): AsyncIterable<unknown>;
  dispose(): void | Promise<void>;
}

interface Result {
  readonly data?: { readonly seen: { readonly cursor: string } } | null;
  readonly errors?: readonly {
    readonly extensions: { readonly code: string; readonly resumeCursor?: string };
  }[];
}

function byGraphql(connect: (urls: Urls, headers: Record<string, string>) => GraphqlClient): Watch {
  return async function* (urls, externalId, { token, ...options }, signal) {
    const client = connect(urls, headersOf(token));
    const leave = () => void client.dispose();
    signal.addEventListener("abort", leave, { once: true });
    try {
      const variables = { externalId, ...options };
      const asked = { query: externalId === undefined ? allQuery : query, variables };
      for await (const { data, errors } of client.iterate(asked) as AsyncIterable<Result>) {
        if (errors?.[0]) {
          const { code, resumeCursor } = errors[0].extensions;
          const name = code.replace("UPSTREAM_", "").replace("RATE_LIMITED", "RESOURCE_EXHAUSTED");
          throw new WatchEnd(name, resumeCursor);
        }
        if (data) yield data.seen.cursor;
      }
      signal.throwIfAborted();
    } finally {
      signal.removeEventListener("abort", leave);
      await client.dispose();
    }
  };
}
