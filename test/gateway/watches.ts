import { Code, ConnectError } from "@connectrpc/connect";
import { createClient as createSseClient } from "graphql-sse";
import type { Event } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentStateSchema, PaymentStatusSchema } from "../../src/gen/payments/v1/payment_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { timeoutMs } from "../until.ts";
import { clientOf, socketClient, type Urls } from "./callers.ts";

/** An event as every edge shows it. */
export interface Seen {
  readonly cursor: string;
  readonly state: string;
  /** Of the payment that it tells of. */
  readonly status: string | undefined;
}

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
  readonly after?: string;
  readonly untilFinal?: boolean;
  readonly token?: string;
}

/** The watch of one payment by each edge; it ends when `signal` aborts. */
type Watch = (
  urls: Urls,
  externalId: string,
  options: WatchOptions,
  signal: AbortSignal,
) => AsyncGenerator<Seen>;

const watches = { gRPC: byGrpc, SSE: bySse, WebSocket: bySocket } satisfies Record<string, Watch>;

export type Edge = keyof typeof watches;
export const edges = Object.keys(watches) as Edge[];

/** An open watch. */
export interface Watching {
  /** The next event, or undefined if the watch has ended well. @throws WatchEnd */
  next(): Promise<Seen | undefined>;
  /** All events from here on, until the watch ends or the last one is enough. */
  until(isEnough?: (seen: Seen) => boolean): Promise<Seen[]>;
  /** How the watch ends, once all events before have been read. */
  ended(): Promise<WatchEnd>;
  leave(): Promise<void>;
}

/** Watches a payment. What does not happen in time rejects. */
export function watch(
  by: Edge,
  urls: Urls,
  externalId: string,
  options: WatchOptions = {},
): Watching {
  const leaving = new AbortController();
  const signal = AbortSignal.any([leaving.signal, AbortSignal.timeout(timeoutMs)]);
  const events = watches[by](urls, externalId, options, signal);
  const next = async () => {
    const { done, value } = await events.next();
    return done ? undefined : value;
  };
  return {
    next,
    async until(isEnough = () => false) {
      const all: Seen[] = [];
      for (let seen = await next(); seen; seen = await next()) {
        all.push(seen);
        if (isEnough(seen)) break;
      }
      return all;
    },
    async ended() {
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
  externalId: string,
  { after, untilFinal = false, token }: WatchOptions,
  signal: AbortSignal,
): AsyncGenerator<Seen> {
  const start =
    after === "earliest" ? { fromStart: true } : { ...(after && { afterCursor: after }) };
  const headers: Record<string, string> = token ? { authorization: `Bearer ${token}` } : {};
  const request = { externalId, untilFinal, ...start };
  try {
    const events = clientOf(PaymentService, urls).watchPayment(request, { headers, signal });
    for await (const { event } of events) if (event) yield seenOf(event);
  } catch (thrown) {
    const { code, metadata } = ConnectError.from(thrown);
    const name = Code[code].replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
    throw new WatchEnd(name, metadata.get("x-resume-cursor") ?? undefined);
  }
}

function seenOf({ cursor, state, resource }: Event): Seen {
  const status = resource.case === "payment" ? resource.value.details?.status : undefined;
  return {
    cursor,
    state: PaymentStateSchema.value[state]?.localName ?? `${state}`,
    status: status === undefined ? undefined : PaymentStatusSchema.value[status]?.localName,
  };
}

const query = `subscription ($externalId: ID!, $after: String, $untilFinal: Boolean) {
  paymentUpdated(externalId: $externalId, after: $after, untilFinal: $untilFinal) {
    cursor state ... on PaymentEvent { payment { details { status } } }
  }
}`;

async function* bySse(
  { publicUrl }: Urls,
  externalId: string,
  { token, ...options }: WatchOptions,
  signal: AbortSignal,
): AsyncGenerator<Seen> {
  const client = createSseClient({
    url: `${publicUrl}/graphql`,
    retryAttempts: 0,
    headers: token ? { authorization: `Bearer ${token}` } : {},
  });
  yield* seenIn(client, { externalId, ...options }, signal);
}

async function* bySocket(
  urls: Urls,
  externalId: string,
  { token, ...options }: WatchOptions,
  signal: AbortSignal,
): AsyncGenerator<Seen> {
  const connectionParams = token ? { authorization: `Bearer ${token}` } : {};
  yield* seenIn(socketClient(urls, { connectionParams }), { externalId, ...options }, signal);
}

interface GraphqlClient {
  iterate(asked: { query: string; variables: Record<string, unknown> }): AsyncIterable<unknown>;
  dispose(): void | Promise<void>;
}

interface Result {
  readonly data?: {
    readonly paymentUpdated: Omit<Seen, "status"> & {
      readonly payment?: { readonly details?: { readonly status?: string } };
    };
  } | null;
  readonly errors?: readonly {
    readonly extensions: { readonly code: string; readonly resumeCursor?: string };
  }[];
}

async function* seenIn(
  client: GraphqlClient,
  variables: Record<string, unknown>,
  signal: AbortSignal,
): AsyncGenerator<Seen> {
  const leave = () => void client.dispose();
  signal.addEventListener("abort", leave, { once: true });
  try {
    for await (const { data, errors } of client.iterate({
      query,
      variables,
    }) as AsyncIterable<Result>) {
      if (errors?.[0]) {
        const { code, resumeCursor } = errors[0].extensions;
        const name = code.replace("UPSTREAM_", "").replace("RATE_LIMITED", "RESOURCE_EXHAUSTED");
        throw new WatchEnd(name, resumeCursor);
      }
      if (!data) continue;
      const { cursor, state, payment } = data.paymentUpdated;
      yield { cursor, state, status: payment?.details?.status };
    }
    signal.throwIfAborted();
  } finally {
    signal.removeEventListener("abort", leave);
    await client.dispose();
  }
}
