import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import type { Call, Core } from "../../src/core/core.ts";
import { GatewayError } from "../../src/errors.ts";
import type { Event } from "../../src/gen/payments/v1/event_pb.ts";
import { OperationSchema } from "../../src/gen/payments/v1/operation_pb.ts";
import { PaymentStatus } from "../../src/gen/payments/v1/payment_pb.ts";
import type { WatchPaymentRequest } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { assertTracesAlike, fastRig, moneyOnly, startBoth, type Traced } from "./fast-rig.ts";
import { paymentEvent } from "./feed.ts";

/*
 * Sends the same subscriptions to the fast path and to Yoga: status, headers, body, log records
 * and calls to the core must be the same. Times, and ids that are new in each response, are not
 * compared.
 */

const { PENDING, SUCCESS } = PaymentStatus;

/** Ends as the external id says: refused with a code, without events, by an error, or regularly. */
async function* watchPayment(
  { externalId }: WatchPaymentRequest,
  { onOpen }: Call,
): AsyncGenerator<Event> {
  const refused = /^refused-(.*)$/.exec(externalId)?.[1];
  if (refused) throw new GatewayError(refused as GatewayError["code"], "refused", {});
  if (externalId === "over") return;
  onOpen?.(externalId === "silent" ? "c-0" : undefined);
  yield paymentEvent("c-1", PENDING);
  yield paymentEvent("c-2", SUCCESS);
  if (externalId !== "fails") return;
  throw new GatewayError("UNAVAILABLE", "shutting down", { resumeCursor: "c-2" });
}

const core: Partial<Core> = {
  watchPayment: watchPayment as Core["watchPayment"],
  async *streamEvents(_, { onOpen }) {
    onOpen?.("c-0");
    yield paymentEvent("c-1", PENDING);
  },
  getOperation: async () => create(OperationSchema, { bankName: "Bank" }),
  paymentEvents: async () => {
    throw new GatewayError("UNAVAILABLE", "the log is away", {});
  },
  getPayment: async () => {
    throw new Error("a secret of the inside");
  },
};

const query = `subscription S($id: ID!) { paymentUpdated(externalId: $id) { cursor final } }`;
const of = (id: unknown, document = query) => ({ query: document, variables: { id } });
const selecting = (selection: string) =>
  `subscription S($id: ID!) { paymentUpdated(externalId: $id) { ${selection} } }`;

/** Parameters of the requests; each set is sent by GET and by POST. */
const asked: readonly Readonly<Record<string, unknown>>[] = [
  ...["order-1", "silent", "over", "fails", "", "x".repeat(300), null, 7].map((id) => of(id)),
  ...["UNAVAILABLE", "OUT_OF_RANGE", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "INTERNAL"].map(
    (code) => of(`refused-${code}`),
  ),
  of("order-1", selecting("payment { operation details { status } } state")),
  of("order-1", selecting("payment { id }")),
  of("order-1", selecting("cursor @skip(if: false) __typename")),
  of("order-1", `${query} query Q { rateLimit { limit } }`),
  { ...of("order-1", `${query} query Q { rateLimit { limit } }`), operationName: "S" },
  { ...of("order-1", `${query} query Q { rateLimit { limit } }`), operationName: "Q" },
  { ...of("order-1"), operationName: "None" },
  { query, variables: {} },
  { query, variables: { id: "order-1", more: 1 } },
  { query, extensions: { persistedQuery: { sha256Hash: "none" } }, variables: { id: "order-1" } },
  { documentId: "known", variables: { id: "order-1" } },
  { documentId: "unknown", variables: { id: "order-1" } },
  of("order-1", selecting("nonsense")),
  of("order-1", "subscription {"),
  of("order-1", selecting(`cursor ${"a: cursor ".repeat(2_000)}`)),
  of("order-1", "subscription { events { cursor } more: events { cursor } }"),
  { query: "subscription { events { cursor kind } }" },
  { query: 'subscription { paymentUpdated(externalId: "order-1", after: "c-0") { cursor } }' },
  { query: "{ rateLimit { limit } }" },
  { query: "mutation { resendCallback(input: {externalId: 7}) { __typename } }" },
];

const headerSets: readonly Readonly<Record<string, string>>[] = [
  { accept: "text/event-stream" },
  { accept: "multipart/mixed;boundary=graphql;subscriptionSpec=1.0,application/json" },
  { accept: "text/event-stream, application/json" },
  { accept: "text/event-stream", "last-event-id": "c-0" },
  { accept: "text/event-stream", "last-event-id": "" },
  { accept: "text/event-stream", authorization: "nobody" },
  { accept: "text/event-stream", origin: "https://shop.example" },
  { accept: "text/event-stream", origin: "https://other.example" },
  { accept: "text/event-stream", "content-encoding": "gzip" },
];

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

async function answerOf(url: string, init: RequestInit): Promise<Answer> {
  const response = await fetch(url, init);
  const { "x-request-id": _, date: __, ...headers } = Object.fromEntries(response.headers);
  const text = await response.text();
  return { status: response.status, headers, text: text.replaceAll(/retry: \d+/g, "retry: n") };
}

test("the fast path takes an ordinary subscription, and leaves all else to Yoga", async (t) => {
  const { path, newOperation } = fastRig(t, core, []);
  const noBody = { take: () => Buffer.alloc(0) };
  const results = async (params: Record<string, string>, headers: Record<string, string>) => {
    const request = {
      method: "GET",
      url: `/graphql?${new URLSearchParams(params)}`,
      headers: { host: "localhost", ...headers },
    } as unknown as IncomingMessage;
    return path.streamFormatOf(request) && (await path.subscribe(request, noBody, newOperation()));
  };
  const accept = "text/event-stream";
  const ordinary = { query, variables: '{"id":"order-1"}' };
  const started = await results(ordinary, { accept });
  assert.deepEqual(
    { ...((await started?.next())?.value.data?.paymentUpdated as object) },
    {
      cursor: "c-1",
      final: false,
    },
  );
  await started?.return?.();
  for (const [params, headers] of [
    [ordinary, { accept: "text/html" }],
    [ordinary, { accept, "transfer-encoding": "chunked" }],
    [ordinary, { accept, origin: "https://other.example" }],
    [{ query }, { accept }],
    [{ ...ordinary, variables: "[" }, { accept }],
    [{ ...ordinary, variables: "[]" }, { accept }],
    [{ query: "{ rateLimit { limit } }" }, { accept }],
  ] as const) {
    assert.equal(await results(params, headers), undefined, JSON.stringify([params, headers]));
  }
});

test("a subscription is answered alike by the fast path and by Yoga", async (t) => {
  const options = {
    corsOrigins: ["https://shop.example"],
    trustedDocuments: { documents: new Map([["known", query]]), only: false },
  };
  const [fast, byYoga] = await startBoth(t, core, options);
  const full = await startBoth(t, core, { ...options, admission: moneyOnly });
  const compare = async (
    about: string,
    path: string,
    init: RequestInit,
    at: readonly Traced[] = [fast, byYoga],
  ) => {
    const [one, other] = await Promise.all(at.map(({ url }) => answerOf(url + path, init)));
    assert.deepEqual(one, other, about.slice(0, 400));
  };
  for (const headers of headerSets) {
    // Checks of the origin and the credentials do not depend on the parameters: a few are enough.
    const { origin, authorization } = headers;
    for (const params of (origin ?? authorization) ? asked.slice(0, 3) : asked) {
      const search = new URLSearchParams();
      for (const [name, value] of Object.entries(params)) {
        search.set(name, typeof value === "string" ? value : JSON.stringify(value));
      }
      const post: RequestInit = {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify(params),
      };
      const about = JSON.stringify([headers, params]);
      await compare(`GET ${about}`, `?${search}`, { headers });
      await compare(`POST ${about}`, "", post);
      if (params === asked[0]) await compare(`POST while full ${about}`, "", post, full);
    }
  }
  for (const path of ["?variables={&query=x", "?query=%ff", "?", "?watch_token=nobody&query=x"]) {
    await compare(path, path, { headers: { accept: "text/event-stream" } });
  }
  assert.ok(fast.seen().length > 100);
  await assertTracesAlike(fast, byYoga);
  assert.ok(full[1].refused.length > 0);
  assert.deepEqual(full[0].refused, full[1].refused);
});
