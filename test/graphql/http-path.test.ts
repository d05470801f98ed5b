import assert from "node:assert/strict";
import { after, test } from "node:test";
import { gzipSync } from "node:zlib";
import type { Call, Core } from "../../src/core/core.ts";
import { type ErrorCode, GatewayError } from "../../src/errors.ts";
import type { Event } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentStatus } from "../../src/gen/payments/v1/payment_pb.ts";
import type { WatchPaymentRequest } from "../../src/gen/payments/v1/payment_service_pb.ts";
import type { EdgeOptions } from "../../src/graphql/edge.ts";
import { mappings } from "../../src/graphql/errors.ts";
import { ask } from "../ask.ts";
import { answeredPayment, errorOf } from "../core/answers.ts";
import { emptyPage, type FakeMethods } from "../fake-core.ts";
import { type Outcomes, recorded } from "../recorded.ts";
import { paymentEvent } from "./feed.ts";
import { moneyOnly, startTraced } from "./recorded-answers.ts";
import type { Served } from "./serve.ts";

/*
 * Answers, records and calls of each kind of request by HTTP. The other files have what a single
 * request does not show. `recorded-answers.ts` describes what is compared, and what is not.
 */

const answered = recorded("graphql/http-path");
after(answered.save);

interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

/** Fails as the external id says: `error:<code>`, `plain:<code>` or `bug:<name>`. */
function failOrNot(externalId: string): void {
  const [what, name = ""] = externalId.split(":");
  if (what === "error") throw errorOf(name as ErrorCode);
  if (what === "plain") throw new GatewayError(name as ErrorCode, "it failed");
  if (what === "bug") throw new TypeError(`no property of ${name}`);
}

/** Ends as the external id says: refused with a code, without events, by an error, or regularly. */
async function* watchPayment(
  { externalId }: WatchPaymentRequest,
  { onOpen }: Call,
): AsyncGenerator<Event> {
  const refused = /^refused-(.*)$/.exec(externalId)?.[1];
  if (refused) throw new GatewayError(refused as ErrorCode, "refused", {});
  if (externalId === "over") return;
  onOpen?.(externalId === "silent" ? "c-0" : undefined);
  yield paymentEvent("c-1", PaymentStatus.PENDING);
  yield paymentEvent("c-2", PaymentStatus.SUCCESS);
  if (externalId !== "fails") return;
  throw new GatewayError("UNAVAILABLE", "shutting down", { resumeCursor: "c-2" });
}

const methods: FakeMethods = {
  watchPayment: watchPayment as Core["watchPayment"],
  async *streamEvents(_, { onOpen }) {
    onOpen?.("c-0");
    yield paymentEvent("c-1", PaymentStatus.PENDING);
  },
  getPayment: async ({ externalId }) => {
    failOrNot(externalId);
    const details = { amount: "10.10", description: "é€𝄞", operationId: "o" };
    return { cursor: "c1", payment: { externalId, details } };
  },
  getOperation: async ({ externalId }) => {
    failOrNot(externalId);
    return { id: "o" };
  },
  listEvents: emptyPage,
  findWalletItems: async () => [{ name: "w" }],
  createPayment: async ({ externalId, amount }) => {
    failOrNot(externalId);
    return answeredPayment({ externalId, details: { amount } });
  },
  confirmPayment: async ({ externalId }) => {
    failOrNot(externalId);
    return answeredPayment({ externalId });
  },
};

const shop = "https://shop.example";
const trusted = new Map([
  ["known", "query Known($id: ID!) { payment(externalId: $id) { externalId } }"],
  ["sha256:abc", "{ rateLimit { limit } }"],
  ["watch", "subscription S($id: ID!) { paymentUpdated(externalId: $id) { cursor final } }"],
]);

async function send({ url }: Served, { method = "POST", path = "", headers, body }: Sent) {
  const type = method === "GET" ? {} : { "content-type": "application/json" };
  const of = { method, headers: { ...type, ...headers }, ...(body !== undefined && { body }) };
  const response = await ask(url + path, of).catch(() => undefined);
  if (!response) return "cut";
  const { status } = response;
  const text = response.text.replace(/^retry: \d+$/gm, "retry");
  const rest = Object.entries(response.headers).filter(([name]) => !ofFraming.has(name));
  const seen = Object.fromEntries(rest);
  if (/^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(String(seen["x-request-id"])))
    seen["x-request-id"] = "new";
  return { status, headers: seen, text };
}

const ofFraming = new Set([
  "connection",
  "keep-alive",
  "date",
  "content-length",
  "transfer-encoding",
]);

const json = (body: unknown): Sent => ({ body: JSON.stringify(body) });
const withHeaders = (headers: Record<string, string>, body: unknown = readOf("e")): Sent => ({
  ...json(body),
  headers,
});

const read =
  "query Read($id: ID!) { payment(externalId: $id) { externalId details { amount description } } }";
const linked =
  "query Linked($id: ID!, $n: Int) { payment(externalId: $id) { externalId operationInfo { id } events(first: $n) { cursor } } }";
const confirm =
  "mutation Confirm($input: ConfirmPaymentInput!) { confirmPayment(input: $input) { __typename ... on Payment { externalId } } }";
const createPayment =
  "mutation Create($input: CreatePaymentInput!) { createPayment(input: $input) { __typename ... on Payment { externalId details { amount } } } }";
const two = "query A { rateLimit { limit } } query B { rateLimit { remaining } }";
const readOf = (id: unknown) => ({ query: read, variables: { id } });
const confirmOf = (input: unknown) => ({ query: confirm, variables: { input } });
const createOf = (input: unknown) => ({ query: createPayment, variables: { input } });
const card = { externalId: "e", amount: "10.10", currency: "EUR" };

const accepts = [
  "*/*",
  "application/json",
  "application/graphql-response+json",
  "application/json; charset=utf-8",
  "application/json; charset=latin1",
  "application/graphql-response+json, application/json",
  "application/json, application/graphql-response+json",
  "application/graphql-response+json; q=0.5, application/json;q=0.9",
  "application/graphql-response+json; charset=utf-8, application/json; charset=utf-8",
  "application/json, */*",
  "*/*, application/json",
  "*/*,application/graphql-response+json",
  "APPLICATION/JSON",
  "application/*",
  "application/json, text/plain, */*",
  "text/html",
  "text/html, */*",
  "text/event-stream",
  "text/event-stream, application/json",
  "application/json, text/event-stream",
  "multipart/mixed, application/graphql-response+json",
  "multipart/mixed",
  "application/graphql-response+jsonx",
  "",
  ",",
  "nonsense",
];

function ofAccept(): [string, Sent][] {
  return accepts.flatMap((accept) => [
    [`accept ${accept}, good`, withHeaders({ accept })],
    [`accept ${accept}, an invalid document`, withHeaders({ accept }, { query: "{ nonsense }" })],
    [`accept ${accept}, a wrong variable`, withHeaders({ accept }, readOf({}))],
    [`accept ${accept}, a failure`, withHeaders({ accept }, readOf("error:NOT_FOUND"))],
    [`accept ${accept}, nobody`, withHeaders({ accept, authorization: "nobody" })],
  ]);
}

const hostileVariables: unknown[] = [
  ...[null, 5, 4111111111111111, true, [], ["e"], {}, { a: 1 }, "", "x".repeat(5_000)],
  ...["\ud800", "\u0000", "é€𝄞", "4111111111111111", "__proto__"],
];

const hostileInputs: unknown[] = [
  ...[null, 1, "text", [], [{}], {}, { externalId: null }, { externalId: 5 }, { externalId: "e" }],
  { externalId: "e", nonsense: 1 },
  { externalId: "e", "4111111111111111": "x" },
  { externalId: "e", amount: 10.1, currency: "EUR" },
  { externalId: "e", amount: "10.10", currency: "NONE" },
  { ...card, paymentMethod: {} },
  { ...card, paymentMethod: { card: null } },
  { ...card, "": "" },
  Array.from({ length: 30 }, () => 1),
];

function ofBodies(): [string, Sent][] {
  const bodies: [string, string | Uint8Array][] = [
    ["nothing", ""],
    ["spaces", "   "],
    ["null", "null"],
    ["a number", "5"],
    ["a text", '"{ rateLimit { limit } }"'],
    ["a list", "[]"],
    ["a batch", JSON.stringify([readOf("a"), readOf("b")])],
    ["an empty object", "{}"],
    ["cut off", '{"query":"{ rateLimit'],
    ["with a mark", `\ufeff${JSON.stringify(readOf("e"))}`],
    ["with a key twice", '{"query":"{ nonsense }","query":"{ rateLimit { limit } }"}'],
    ["with a prototype", '{"query":"{ rateLimit { limit } }","__proto__":{"a":1}}'],
    ["with a constructor", '{"query":"{ rateLimit { limit } }","constructor":1}'],
    [
      "with a prototype in variables",
      '{"query":"{ rateLimit { limit } }","variables":{"__proto__":1}}',
    ],
    ["UTF-8 that is none", Buffer.from(JSON.stringify(readOf("e\u0001")).replace("\\u0001", "X"))],
    ["bytes", Buffer.from([0xc3, 0x28, 0xff, 0x00])],
    [
      "a text with broken UTF-8",
      Buffer.from([...Buffer.from('{"query":"{ a'), 0xff, ...Buffer.from(' }"}')]),
    ],
    ["a variable that is not UTF-8", Buffer.from(JSON.stringify(readOf("\xff")), "latin1")],
    ["a replacement character", JSON.stringify(readOf("\ufffd"))],
    ["gzip", gzipSync(JSON.stringify(readOf("e")))],
    ["too large", JSON.stringify({ query: "x".repeat(1024 * 1024) })],
    [
      "deep",
      `{"query":"{ rateLimit { limit } }","variables":${"[".repeat(500)}${"]".repeat(500)}}`,
    ],
  ];
  return bodies.map(([name, body]) => [`a body: ${name}`, { body }]);
}

function ofParams(): [string, Sent][] {
  const query = "{ rateLimit { limit } }";
  const all: Record<string, unknown>[] = [
    ...[null, 5, "", {}, [], true].map((wrong) => ({ query: wrong })),
    ...[null, 5, "", "{}", [], true].map((variables) => ({ query, variables })),
    ...[null, 5, "", {}, [], "A", "nonsense"].map((operationName) => ({
      query: two,
      operationName,
    })),
    ...[null, 5, "", {}, [], { a: 1 }].map((extensions) => ({ query, extensions })),
    ...[null, 5, "", {}, "known", "unknown", "abc", "sha256:abc"].map((documentId) => ({
      documentId,
    })),
    ...["known", "unknown"].map((documentId) => ({ documentId, query, variables: { id: "e" } })),
    ...["abc", "unknown", 5, null].map((sha256Hash) => ({
      extensions: { persistedQuery: { version: 1, sha256Hash } },
    })),
    { query: two, operationName: "B" },
    { query: two },
    { query, nonsense: 1 },
    { query, nonsense: null },
    { query, id: "x", operationName: null, variables: null },
    { documentId: "known", variables: { id: "e" } },
    { documentId: "known", variables: {} },
  ];
  return all.map((params) => [`params ${JSON.stringify(params)}`, json(params)]);
}

function ofDocuments(): [string, Sent][] {
  const aliases = (count: number) =>
    Array.from({ length: count }, (_, i) => `a${i}: rateLimit { limit }`).join(" ");
  const documents: string[] = [
    "{ rateLimit { limit remaining resetSeconds } }",
    "{ __typename }",
    "{ __schema { queryType { name } } }",
    '{ __type(name: "Payment") { name } }',
    "{ rateLimit { __typename ... on RateLimit { limit } } }",
    "query Q { ...F } fragment F on Query { rateLimit { limit } }",
    "query Q { ...F } fragment F on Query { ...F }",
    "query ($skip: Boolean = true) { rateLimit { limit @skip(if: $skip) remaining } }",
    "query ($skip: Boolean!) { rateLimit { limit @skip(if: $skip) remaining } }",
    "{ rateLimit { limit @defer } }",
    "{ ... @defer { rateLimit { limit } } }",
    "{ nonsense }",
    "{ rateLimit }",
    "{ rateLimit { limits } }",
    "{",
    "# nothing",
    "mutation { nonsense }",
    "type Query { a: Int }",
    "subscription { events { cursor } }",
    `{ ${aliases(20)} }`,
    `{ ${aliases(60)} }`,
    `{ ${"rateLimit { limit } ".repeat(600)} }`,
    `{ rateLimit { limit } } #${"x".repeat(70_000)}`,
    '{ payment(externalId: "e") { externalId } }',
    '{ a: payment(externalId: "e") { externalId } b: payment(externalId: "error:NOT_FOUND") { externalId } }',
    "{ payment(externalId: 5) { externalId } }",
    '{ payment(externalId: "bug:x") { externalId } }',
    `{ ${Array.from({ length: 20 }, (_, i) => `p${i}: payment(externalId: "e") { events(first: 100) { cursor } }`).join(" ")} }`,
    'mutation { a: confirmPayment(input: {externalId: "e"}) { __typename } b: confirmPayment(input: {externalId: "error:NOT_FOUND"}) { __typename } }',
  ];
  return documents.map((query) => [`document ${query.slice(0, 60)}`, json({ query })]);
}

function ofHeaders(): [string, Sent][] {
  const headers: Record<string, string>[] = [
    { "x-request-id": "trace-1" },
    { "x-request-id": "a b" },
    { "x-request-id": "4111111111111111" },
    { "idempotency-key": "once" },
    { "idempotency-key": "" },
    { authorization: "nobody" },
    { authorization: "denied" },
    { authorization: "bug" },
    { "x-merchant-account": "default" },
    { "content-encoding": "identity" },
    { "content-encoding": "gzip" },
    { "content-encoding": "" },
    { "content-type": "text/plain" },
    { "content-type": "APPLICATION/JSON" },
    { "content-type": "application/json; charset=utf-8" },
    { "content-type": "application/json;charset=UTF-8" },
    { "content-type": "application/json; charset=latin1" },
    { "content-type": "application/json ; x=y" },
    { "content-type": "application/json, text/plain" },
    { "content-type": "application/jsonx" },
    { "content-type": "application/graphql+json" },
    { "content-type": "application/graphql" },
    { "content-type": "application/x-www-form-urlencoded" },
    { "content-type": "multipart/form-data; boundary=x" },
    { "transfer-encoding": "chunked" },
    { origin: shop },
    { origin: "https://evil.example" },
    { origin: "null" },
    { origin: shop, "sec-fetch-site": "cross-site" },
    { origin: shop, "access-control-request-headers": "authorization" },
    { "sec-fetch-site": "same-origin" },
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
    { "accept-encoding": "gzip, br" },
    { host: "[::1]:80" },
    { host: "user@host" },
    { cookie: "a=b" },
    { "last-event-id": "c1" },
    { "x-apollo-operation-name": "x" },
  ];
  return [
    ...headers.map((more): [string, Sent] => [
      `headers ${JSON.stringify(more)}`,
      withHeaders(more),
    ]),
    ["a page's failure", withHeaders({ origin: shop }, readOf("error:NOT_FOUND"))],
    ["a page's invalid document", withHeaders({ origin: shop }, { query: "{ nonsense }" })],
    [
      "a key with one mutation",
      withHeaders({ "idempotency-key": "k" }, confirmOf({ externalId: "e" })),
    ],
    [
      "a key with two",
      withHeaders(
        { "idempotency-key": "k" },
        {
          query:
            "mutation ($i: ConfirmPaymentInput!) { a: confirmPayment(input: $i) { __typename } b: confirmPayment(input: $i) { __typename } }",
          variables: { i: { externalId: "e" } },
        },
      ),
    ],
    ["nobody, in Ukrainian", withHeaders({ authorization: "nobody", "accept-language": "uk" })],
    ["a failure in Ukrainian", withHeaders({ "accept-language": "uk" }, readOf("error:NOT_FOUND"))],
    ["nobody, and no JSON", { body: "x", headers: { authorization: "nobody" } }],
    ["a query in the address", { ...json({}), path: "?query=%7B__typename%7D" }],
    [
      "a document's id in the address",
      { ...json({ variables: { id: "e" } }), path: "?documentId=known" },
    ],
    ["a watch token in the address", { ...json(readOf("e")), path: "?watch_token=x" }],
    ...["PUT", "PATCH", "DELETE", "HEAD"].map((method): [string, Sent] => [
      method,
      { ...json(readOf("e")), method },
    ]),
    ...[{}, { origin: shop }, { origin: "https://evil.example" }].flatMap(
      (headers): [string, Sent][] => {
        const asks = {
          "access-control-request-method": "POST",
          "access-control-request-headers": "authorization,content-type",
        };
        const ofPage = JSON.stringify(headers);
        return [
          [`OPTIONS ${ofPage}`, { method: "OPTIONS", headers }],
          [`a preflight ${ofPage}`, { method: "OPTIONS", headers: { ...headers, ...asks } }],
        ];
      },
    ),
  ];
}

const ofPayment = (selection: string) =>
  `subscription S($id: ID!) { paymentUpdated(externalId: $id) { ${selection} } }`;
const subscription = ofPayment("cursor final");
const watching = (id: unknown, query = subscription) => ({ query, variables: { id } });
const withQuery = watching("order-1", `${subscription} query Q { rateLimit { limit } }`);

/** Parameters of subscriptions, and of what fails to be one; each set is sent by GET and by POST. */
const subscribing: readonly Readonly<Record<string, unknown>>[] = [
  ...["order-1", "silent", "over", "fails", "", "x".repeat(300), null, 7].map((id) => watching(id)),
  ...["UNAVAILABLE", "OUT_OF_RANGE", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "INTERNAL"].map(
    (code) => watching(`refused-${code}`),
  ),
  watching("order-1", ofPayment("payment { operation details { status } } state")),
  watching("order-1", ofPayment("payment { id }")),
  watching("order-1", ofPayment("cursor @skip(if: false) __typename")),
  withQuery,
  { ...withQuery, operationName: "S" },
  { ...withQuery, operationName: "Q" },
  { ...watching("order-1"), operationName: "None" },
  { query: subscription, variables: {} },
  { query: subscription, variables: { id: "order-1", more: 1 } },
  { ...watching("order-1"), extensions: { persistedQuery: { sha256Hash: "none" } } },
  { documentId: "watch", variables: { id: "order-1" } },
  { documentId: "unknown", variables: { id: "order-1" } },
  watching("order-1", ofPayment("nonsense")),
  watching("order-1", "subscription {"),
  watching("order-1", ofPayment(`cursor ${"a: cursor ".repeat(2_000)}`)),
  watching("order-1", "subscription { events { cursor } more: events { cursor } }"),
  { query: "subscription { events { cursor kind } }" },
  { query: 'subscription { paymentUpdated(externalId: "order-1", after: "c-0") { cursor } }' },
  { query: "{ rateLimit { limit } }" },
  { query: "mutation { resendCallback(input: {externalId: 7}) { __typename } }" },
];

const eventStream = { accept: "text/event-stream" };
const streamHeaders: readonly Readonly<Record<string, string>>[] = [
  eventStream,
  { accept: "multipart/mixed;boundary=graphql;subscriptionSpec=1.0,application/json" },
  { accept: "text/event-stream, application/json" },
  { ...eventStream, "last-event-id": "c-0" },
  { ...eventStream, "last-event-id": "" },
  { ...eventStream, authorization: "nobody" },
  { ...eventStream, origin: shop },
  { ...eventStream, origin: "https://evil.example" },
  { ...eventStream, "content-encoding": "gzip" },
];

const subscriptions: [string, Sent][] = [
  ...streamHeaders.flatMap((headers) => {
    // Checks of the origin and the credentials do not depend on the parameters: a few are enough.
    const isFew = (headers.origin ?? headers.authorization) !== undefined;
    return subscribing.slice(0, isFew ? 3 : undefined).flatMap((params): [string, Sent][] => {
      const search = new URLSearchParams();
      for (const [name, value] of Object.entries(params)) {
        search.set(name, typeof value === "string" ? value : JSON.stringify(value));
      }
      const about = JSON.stringify([headers, params]).slice(0, 400);
      return [
        [`GET ${about}`, { method: "GET", path: `?${search}`, headers }],
        [`POST ${about}`, withHeaders(headers, params)],
      ];
    });
  }),
  ...["?variables={&query=x", "?query=%ff", "?", "?watch_token=nobody&query=x"].map(
    (path): [string, Sent] => [`GET ${path}`, { method: "GET", path, headers: eventStream }],
  ),
];

/** Operations in the address of a GET. */
function ofAddresses(): [string, Sent][] {
  const query = "{ rateLimit { limit } }";
  const all: Record<string, string>[] = [
    ...accepts.map((accept) => ({ query, accept })),
    ...["{ nonsense }", "{", "", two, "mutation { nonsense }"].map((wrong) => ({ query: wrong })),
    { query: 'mutation { confirmPayment(input: {externalId: "e"}) { __typename } }' },
    { query: read, variables: '{"id":"e"}' },
    { query: read, variables: '{"id":"error:NOT_FOUND"}' },
    ...["", "[", "[]", "5", "null", '"x"'].map((variables) => ({ query: read, variables })),
    ...["", "[", "[]", "5", "null"].map((extensions) => ({ query, extensions })),
    ...["A", "", "nonsense"].map((operationName) => ({ query: two, operationName })),
    ...["known", "unknown", ""].map((documentId) => ({ documentId, variables: '{"id":"e"}' })),
    { query, more: "1" },
    { query: "subscription { events { cursor } }" },
    { query, origin: "https://evil.example" },
    { query, origin: shop },
    { query, authorization: "nobody" },
  ];
  return all.map(({ accept = "*/*", origin, authorization, ...params }) => {
    const headers = { accept, ...(origin && { origin }), ...(authorization && { authorization }) };
    const path = `?${new URLSearchParams(params)}`;
    return [`GET ${JSON.stringify([headers, params])}`, { method: "GET", path, headers }];
  });
}

const codes = Object.keys(mappings) as ErrorCode[];

const requests: [string, Sent][] = [
  ["a read", json(readOf("e"))],
  ["a read with links", json({ query: linked, variables: { id: "e", n: 5 } })],
  ["a read that costs too much", json({ query: linked, variables: { id: "e", n: 5_000_000 } })],
  ["a read whose link fails", json({ query: linked, variables: { id: "plain:NOT_FOUND" } })],
  ["a variable too many", json({ query: read, variables: { id: "e", more: 1 } })],
  ["no variable", json({ query: read })],
  ["a confirm", json(confirmOf({ externalId: "e" }))],
  ["a create", json(createOf(card))],
  ["many values", json({ query: read, variables: { id: "e", more: Array(10_001).fill(1) } })],
  ...[{}, { externalId: "c" }, { authToken: ["c"] }, { rid: "c" }, null, 5, undefined].map(
    (c): [string, Sent] => [
      `a customer ${JSON.stringify(c)}`,
      json({
        query: "query ($c: CustomerInput!) { walletItems(customer: $c) { name } }",
        variables: { c },
      }),
    ],
  ),
  ...codes.flatMap((code): [string, Sent][] => [
    [`a read, ${code}`, json(readOf(`error:${code}`))],
    [`a read, plain ${code}`, json(readOf(`plain:${code}`))],
    [`a confirm, ${code}`, json(confirmOf({ externalId: `error:${code}` }))],
    [`a confirm, plain ${code}`, json(confirmOf({ externalId: `plain:${code}` }))],
  ]),
  ["a bug in a read", json(readOf("bug:4111111111111111"))],
  ["a bug in a confirm", json(confirmOf({ externalId: "bug:4111111111111111" }))],
  ...hostileVariables.map((id): [string, Sent] => [`id ${JSON.stringify(id)}`, json(readOf(id))]),
  ...hostileInputs.flatMap((input): [string, Sent][] => [
    [`create ${JSON.stringify(input)}`, json(createOf(input))],
    [`confirm ${JSON.stringify(input)}`, json(confirmOf(input))],
  ]),
  ...ofAccept(),
  ...ofBodies(),
  ...ofParams(),
  ...ofDocuments(),
  ...ofHeaders(),
  ...ofAddresses(),
];

type Variant = readonly [string, Partial<EdgeOptions>, readonly [string, Sent][]];
const aThirdOf = <Item>(all: readonly Item[]) => all.filter((_, index) => index % 3 === 0);
const pages = { corsOrigins: [shop, "https://other.example"], introspection: true };
const trustedOnly = { trustedDocuments: { documents: trusted, only: true } };
const variants: readonly Variant[] = [
  // What pages may do and introspection, which the second variant turns on, are refused here.
  ["as it is by default", {}, [...aThirdOf(requests), ...ofDocuments(), ...ofHeaders()]],
  ["with pages and introspection", pages, [...requests, ...subscriptions]],
  ["with trusted documents only", trustedOnly, aThirdOf(requests)],
  ["while it is full", { admission: moneyOnly }, aThirdOf([...requests, ...subscriptions])],
];

for (const [name, variant, sent] of variants) {
  test(`requests are answered as recorded, ${name}`, async (t) => {
    const trustedDocuments = { documents: trusted, only: false };
    const gateway = await startTraced(t, methods, { trustedDocuments, ...variant });
    assert.ok(sent.length >= 100, `${sent.length}`);
    const answers: Outcomes = {};
    for (const [what, request] of sent) answers[what] = await send(gateway, request);
    answered.check(name, answers);
    answered.check(`${name}, beside the answers`, await gateway.trace());
  });
}
