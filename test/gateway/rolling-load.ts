import { setTimeout as delay } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import type grpc from "@grpc/grpc-js";
import { createClient as createSseClient } from "graphql-sse";
import {
  EventService,
  StreamEventsRequestSchema,
  type StreamEventsResponse,
} from "../../src/gen/payments/v1/event_service_pb.ts";
import {
  CreatePaymentRequestSchema,
  GetPaymentRequestSchema,
  PaymentService,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { grpcJsClient } from "../rpc/start.ts";
import {
  clientOf,
  graphql,
  paymentInput,
  paymentRequest,
  paymentTold,
  sendCallback,
  socketClient,
} from "./callers.ts";
import type { Haproxy } from "./haproxy.ts";

/** Calls that run continuously: how many of each kind were made, and which failed. */
export interface Calls {
  readonly made: Map<string, number>;
  readonly failures: string[];
  /** Makes no further calls, and resolves when those in flight have ended. */
  stop(): Promise<void>;
}

/** Makes reads, payments and callbacks continuously by every kind of client, without retries. */
export function callOn(proxy: Haproxy, password: string): Calls {
  const made = new Map<string, number>();
  const failures: string[] = [];
  let going = true;
  let n = 0;

  const viaGrpc = grpcJsClient(PaymentService, Number(new URL(proxy.grpcUrl).port)) as never as {
    [Method in "getPayment" | "createPayment"]: (
      request: unknown,
      done: (error: grpc.ServiceError | null) => void,
    ) => void;
  } & grpc.Client;
  const unary = (method: "getPayment" | "createPayment", request: unknown) =>
    new Promise<void>((resolve, reject) => {
      viaGrpc[method](request, (error) => (error ? reject(error) : resolve()));
    });
  const connect = clientOf(PaymentService, proxy, "Connect");
  const query = async (text: string) => {
    const answer = JSON.stringify(await graphql(proxy, text));
    if (/"errors"|Error"/.test(answer)) throw new Error(answer);
  };
  const fresh = () => `none-${n++}`;

  const calls: Record<string, () => Promise<unknown>> = {
    "grpc-js read": () =>
      unary("getPayment", create(GetPaymentRequestSchema, { externalId: "none-first" })),
    "grpc-js payment": () =>
      unary("createPayment", create(CreatePaymentRequestSchema, paymentRequest(fresh()))),
    "Connect read": () => connect.getPayment({ externalId: "none-first" }),
    "Connect payment": () => connect.createPayment(paymentRequest(fresh())),
    "GraphQL read": () => query('{ payment(externalId: "none-first") { externalId } }'),
    "GraphQL payment": () =>
      query(`mutation { createPayment(input: ${paymentInput(fresh())}) {
        __typename ... on Error { message }
      } }`),
    callback: () => sendCallback(proxy, paymentTold(`callback-${n++}`), { password }),
  };

  const worker = async (name: string, call: () => Promise<unknown>) => {
    while (going) {
      made.set(name, (made.get(name) ?? 0) + 1);
      await call().catch((error: Error) => failures.push(`${name}: ${error.message}`));
      // With answers that take 50 ms, a third of the workers have a call in flight.
      await delay(100);
    }
  };
  const workers = Object.entries(calls).map(([name, call]) => worker(name, call));
  return {
    made,
    failures,
    async stop() {
      going = false;
      await Promise.all(workers);
      viaGrpc.close();
    },
  };
}

/** Reads all events, and resumes its stream whenever it ends. */
export interface Follower {
  /** Cursors in the order of arrival. */
  readonly seen: string[];
  /** How each of its streams ended, other than by `stop`. */
  readonly ends: StreamEnd[];
  stop(): Promise<void>;
}

export interface StreamEnd extends StreamFault {
  /** Number of events that the stream delivered. */
  readonly events: number;
}

interface StreamFault {
  readonly code: string;
  readonly resumeCursor?: string | undefined;
}

/** Reads events behind a cursor until the stream ends, and resolves with how it ended. */
type Read = (
  after: string,
  seen: (cursor: string) => void,
  leave: AbortSignal,
) => Promise<StreamFault>;

/** One follower for each kind of stream, from the oldest event on. */
export function followOn(proxy: Haproxy): Record<string, Follower> {
  return {
    "grpc-js": follow(readByGrpc(proxy)),
    SSE: follow(readBySse(proxy)),
    WebSocket: follow(readByWebSocket(proxy)),
  };
}

function follow(read: Read): Follower {
  const seen: string[] = [];
  const ends: StreamEnd[] = [];
  const leave = new AbortController();
  const run = async () => {
    let after = "earliest";
    while (!leave.signal.aborted) {
      const before = seen.length;
      const end = await read(
        after,
        (cursor) => {
          seen.push(cursor);
          after = cursor;
        },
        leave.signal,
      ).catch((error: Error): StreamFault => ({ code: error.message || String(error) }));
      if (leave.signal.aborted) return;
      ends.push({ ...end, events: seen.length - before });
      // The gateway's resume cursor may be later than the last event: it skips other topics.
      after = end.resumeCursor ?? after;
      await delay(20);
    }
  };
  const running = run();
  return {
    seen,
    ends,
    async stop() {
      leave.abort();
      await running;
    },
  };
}

function readByGrpc({ grpcUrl }: Haproxy): Read {
  return (after, seen, leave) =>
    new Promise((resolve) => {
      const client = grpcJsClient(EventService, Number(new URL(grpcUrl).port)) as never as {
        streamEvents(request: unknown): grpc.ClientReadableStream<StreamEventsResponse>;
      } & grpc.Client;
      const stream = client.streamEvents(create(StreamEventsRequestSchema, { afterCursor: after }));
      const cancel = () => stream.cancel();
      leave.addEventListener("abort", cancel, { once: true });
      const end = (how: StreamFault) => {
        leave.removeEventListener("abort", cancel);
        client.close();
        resolve(how);
      };
      stream.on("data", ({ event }) => seen(event?.cursor ?? ""));
      stream.on("end", () => end({ code: "OK" }));
      stream.on("error", ({ code, metadata, details }: grpc.ServiceError) =>
        end({
          code: code === 14 ? "UNAVAILABLE" : `${code} ${details}`,
          resumeCursor: metadata.get("x-resume-cursor")[0]?.toString(),
        }),
      );
    });
}

interface Result {
  readonly data?: { readonly events: { readonly cursor: string } } | null;
  readonly errors?: readonly {
    readonly extensions?: { readonly code?: string; readonly resumeCursor?: string };
  }[];
}

const subscription = (after: string) => ({
  query: `subscription { events(after: "${after}") { cursor } }`,
});

async function readResults(
  results: AsyncIterableIterator<unknown>,
  seen: (cursor: string) => void,
  leave: AbortSignal,
): Promise<StreamFault> {
  const cancel = () => void results.return?.();
  leave.addEventListener("abort", cancel, { once: true });
  try {
    for await (const result of results) {
      const { data, errors } = result as Result;
      if (errors) {
        const { code = "none", resumeCursor } = errors[0]?.extensions ?? {};
        return { code: code.replace("UPSTREAM_", ""), resumeCursor };
      }
      if (data) seen(data.events.cursor);
    }
    return { code: "complete" };
  } finally {
    leave.removeEventListener("abort", cancel);
  }
}

function readBySse({ publicUrl }: Haproxy): Read {
  return async (after, seen, leave) => {
    const client = createSseClient({ url: `${publicUrl}/graphql`, retryAttempts: 0 });
    try {
      return await readResults(client.iterate(subscription(after)), seen, leave);
    } finally {
      client.dispose();
    }
  };
}

function readByWebSocket(proxy: Haproxy): Read {
  return async (after, seen, leave) => {
    const client = socketClient(proxy);
    try {
      return await readResults(client.iterate(subscription(after)), seen, leave);
    } finally {
      await client.dispose();
    }
  };
}

/** The cursors of the first `upTo` events, read from one gateway. */
export async function everyCursor(rpcUrl: string, upTo: number): Promise<string[]> {
  const cursors: string[] = [];
  const events = clientOf(EventService, { rpcUrl }).streamEvents({ afterCursor: "earliest" });
  for await (const { event } of events) if (cursors.push(event?.cursor ?? "") === upTo) break;
  return cursors;
}
