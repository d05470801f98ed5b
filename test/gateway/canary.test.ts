import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { create, type DescService, toJson } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import type { Gateway } from "../../src/app/gateway.ts";
import { parseCallback } from "../../src/callbacks/parse-callback.ts";
import { readConfig } from "../../src/config/config.ts";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentMode } from "../../src/gen/payments/v1/payment_input_pb.ts";
import {
  CreatePaymentRequestSchema,
  PaymentService,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { PayoutService } from "../../src/gen/payments/v1/payout_service_pb.ts";
import { SubscriptionService } from "../../src/gen/payments/v1/subscription_service_pb.ts";
import { WalletService } from "../../src/gen/payments/v1/wallet_service_pb.ts";
import { noReport } from "../../src/report.ts";
import type { Seal } from "../../src/secrets/seal.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { createTracing } from "../../src/telemetry/telemetry.ts";
import { sign } from "../../src/wire/signature.ts";
import { ask } from "../ask.ts";
import { accessEnv, newKey, scratch, signingKey, signToken } from "../auth/issuer.ts";
import { createRedisLedger } from "../ledger/create.ts";
import { dumpRedis } from "../redis/dump.ts";
import { type RedisServer, startRedis, withoutRedis } from "../redis/server.ts";
import { connected } from "../redis/suite.ts";
import { startBefore } from "../start.ts";
import { type Collector, startCollector, tracedBy } from "../telemetry/tracing/collector.ts";
import { timeoutMs } from "../until.ts";
import { postGraphql, socketClient } from "./callers.ts";
import { findCanaries, type Place } from "./canaries.ts";
import { behaviours, echoingUpstream } from "./echoing-upstream.ts";

const files = scratch();
const signing = await signingKey("es");
/** Passes the Luhn check, like the other card numbers: in texts, only such numbers are masked. */
const pan = "4716108999716531";

const secrets = {
  pan,
  recipientPan: "5275006902338148",
  fullNumber: "6011000990139424",
  accountNumber: "UA903052992990004149123456789",
  recipientIban: "UA213223130000026007233566001",
  cvv: "8375",
  cryptogram: "AgAAABBWl+canary/cryptoGRAM0123==",
  cardToken: "card-token-canary-77f0",
  walletToken: JSON.stringify({ data: "apple-pay-canary-c2lnbmF0dXJl", version: "EC_v1" }),
  answeredToken: "answered-token-canary-1c9e",
  delegateKey: "0fb3c1a2-77aa-4c1d-9e55-c0ffeecanary".replace("canary", "abcdef"),
  password: "merchant/password+canary",
  watchSecret: "watch-secret-canary-0123456789abcdef",
  apiKey: newKey(),
  wrongKey: newKey(),
  jwt: await signToken(signing, { scope: "payments:write payments:read" }),
  expiredJwt: await signToken(signing, { exp: 1_000_000_000 }),
  customerJwt: await signToken(signing, { customer_external_id: "customer-1" }),
  customerAuth: "eyJhbGciOiJub25lIn0.Y3VzdG9tZXItYXV0aC1jYW5hcnk.c2ln",
  wrongWatchToken: "wrong-watch-token-canary-5d",
};

const upstream = echoingUpstream({
  token: secrets.answeredToken,
  number: secrets.fullNumber,
  iban: secrets.recipientIban,
});
/** Requests that the payments service received. */
let requests = 0;
upstream.on("request", () => {
  requests += 1;
});
/** Undefined without a redis-server; otherwise all of its content is searched too. */
let redis: RedisServer | undefined;
let collector: Collector;
let gateway: Gateway;
const logged: string[] = [];
const errors: Place[] = [];
const transports: Record<string, Transport> = {};
/** A client that speaks JSON, binary Connect or gRPC. */
const clientOf = <Service extends DescService>(service: Service, by: string): Client<Service> =>
  createClient(service, transports[by] ?? assert.fail(by));
let nth = 0;

before(async () => {
  if (!withoutRedis) redis = await startRedis();
  collector = await startCollector();
  const log = createLogger("trace", { write: (line) => logged.push(line) });
  gateway = await startBefore(upstream, environment(), "", log);
  const baseUrl = gateway.rpcUrl;
  const idle = { idleConnectionTimeoutMs: 100 };
  transports.json = createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false });
  transports.binary = createConnectTransport({ baseUrl, httpVersion: "2", ...idle });
  transports.grpc = createGrpcTransport({ baseUrl, ...idle });
});
after(async () => {
  await gateway.stop();
  collector.close();
  await redis?.close();
});

const scopes = [
  ...["payments:write", "payments:read", "payouts:write", "payouts:read", "wallet:read"],
  ...["wallet:write", "subscriptions:write", "operations:read", "events:read"],
  ...["callbacks:resend", "watch:create"],
];

function environment(): Record<string, string> {
  return {
    ...(redis ? { REDIS_URL: redis.url } : {}),
    UPSTREAM_PASSWORD: secrets.password,
    // Long enough for an answer on a busy machine; calls whose answer is lost wait for it.
    UPSTREAM_TIMEOUT: "500ms",
    WATCH_TOKEN_SECRET: secrets.watchSecret,
    RATE_LIMIT_INITIAL: "100000",
    RATE_LIMIT_MAX_WAIT: "1s",
    ...accessEnv(files, [{ name: "shop", key: secrets.apiKey, scopes }], signing),
    LOG_LEVEL: "trace",
    ...tracedBy(collector),
    OTEL_BSP_MAX_QUEUE_SIZE: "100000",
  };
}

const card = { number: pan, cvv: secrets.cvv, expMonth: 12, expYear: 2031 };
const methods = [
  { case: "cc", value: card },
  { case: "ccToken", value: { token: secrets.cardToken } },
  { case: "applePay", value: { token: secrets.walletToken } },
  {
    case: "decryptedApplePay",
    value: {
      applicationPrimaryAccountNumber: pan,
      applicationExpirationDate: "311231",
      onlinePaymentCryptogram: secrets.cryptogram,
    },
  },
  {
    case: "decryptedGooglePay",
    value: { pan, expMonth: 12, expYear: 2031, cryptogram: secrets.cryptogram },
  },
] as const;

const order = (externalId: string) => ({
  amount: "10.10",
  currency: "UAH",
  externalId,
  customer: { email: "customer@shop.example", accountNumber: secrets.accountNumber },
});
const idOf = (behaviour: string) => `${behaviour}-${++nth}`;
const as = (token: string, more: Record<string, string> = {}) => ({
  headers: { authorization: `Bearer ${token}`, ...more },
  signal: AbortSignal.timeout(timeoutMs),
});

/** Awaits a call. Records all that its caller receives if it fails, and returns the error. */
async function failed(where: string, call: Promise<unknown>): Promise<ConnectError | undefined> {
  try {
    await call;
    return undefined;
  } catch (thrown) {
    const error = ConnectError.from(thrown);
    const details = error.details.map((detail) =>
      "value" in detail && detail.value instanceof Uint8Array
        ? Buffer.from(detail.value).toString("latin1")
        : JSON.stringify(detail),
    );
    const told = [error.message, error.rawMessage, ...details, ...[...error.metadata].flat()];
    errors.push({ where: `error of ${where}`, text: told.join("\n") });
    return error;
  }
}

/** A direct payment by card or wallet that the service treats like this. */
const direct = (behaviour: string, method: (typeof methods)[number]) => ({
  ...order(idOf(behaviour)),
  mode: PaymentMode.DIRECT,
  paymentMethod: { method: method as never },
});

for (const name of ["json", "binary", "grpc"]) {
  test(`calls by ${name} succeed or fail by the service's behaviour`, async () => {
    const payments = clientOf(PaymentService, name);
    const payouts = clientOf(PayoutService, name);
    const wallet = clientOf(WalletService, name);
    const subscriptions = clientOf(SubscriptionService, name);
    const { apiKey, customerAuth, delegateKey } = secrets;
    const before = requests;
    const codes = new Set<Code | undefined>();

    for (const behaviour of behaviours) {
      if (behaviour === "limited") continue;
      const recurrent = {
        ...order(idOf(behaviour)),
        recurrentId: "r-1",
        delegateApiKey: delegateKey,
      };
      const customer = { externalId: idOf(behaviour) };
      const status = { customer: { authToken: customerAuth }, optionId: behaviour };
      const subscriptionId = "6f1f3c52-0d0a-4b8e-8a53-1c2f4f0f7a01";
      const calls: [what: string, call: Promise<unknown>][] = [
        ...methods.map((method): [string, Promise<unknown>] => {
          const payment = direct(behaviour, method);
          const token = method.case === "cc" ? secrets.jwt : apiKey;
          const keyed = as(token, { "idempotency-key": `key-${nth}` });
          return [method.case, payments.createPayment(payment, keyed)];
        }),
        ["recurrent", payments.createRecurrentPayment(recurrent as never, as(apiKey))],
        ...[{ number: secrets.recipientPan }, { token: secrets.cardToken }].map(
          (cardData): [string, Promise<unknown>] => [
            "payout",
            payouts.requestPayout(payout(idOf(behaviour), cardData), as(apiKey)),
          ],
        ),
        [
          "wallet",
          wallet.findWalletItems({ customer }, as(apiKey, { "x-customer-auth": customerAuth })),
        ],
        ["wallet of a token", wallet.getConfirmationStatus(status, as(apiKey))],
        [
          "subscription of a customer",
          subscriptions.deactivateSubscription({ subscriptionId }, as(secrets.customerJwt)),
        ],
      ];
      const told = calls.map(([what, call]) => failed(`${name} ${behaviour} ${what}`, call));
      for (const error of await Promise.all(told)) codes.add(error?.code);
    }
    assert.ok(requests - before > 80, `${requests - before} requests`);
    for (const code of [undefined, Code.InvalidArgument, Code.Unknown, Code.Unavailable]) {
      assert.ok(codes.has(code), `one call at least ends with ${code && Code[code]}`);
    }
  });

  test(`invalid and unauthorized calls by ${name} are refused`, async () => {
    const payments = clientOf(PaymentService, name);
    for (const wrong of [
      { ...card, number: `${pan} ` },
      { ...card, cvv: `${secrets.cvv}x`, expMonth: 13 },
      { number: pan, cvv: secrets.cvv },
    ]) {
      const request = direct("success", { case: "cc", value: wrong as typeof card });
      const error = await failed(name, payments.createPayment(request, as(secrets.apiKey)));
      assert.equal(error?.code, Code.InvalidArgument);
    }
    for (const token of [secrets.wrongKey, secrets.expiredJwt, secrets.wrongWatchToken]) {
      const error = await failed(name, payments.getPayment({ externalId: "e" }, as(token)));
      assert.equal(error?.code, Code.Unauthenticated);
    }
    const forbidden = payments.getPayment({ externalId: "e" }, as(secrets.customerJwt));
    assert.equal((await failed(name, forbidden))?.code, Code.PermissionDenied);
  });
}

function payout(externalId: string, cardData: { number: string } | { token: string }) {
  return {
    payoutType: "card",
    order: { currency: "UAH", description: "d", externalId, originalAmount: "1.00" },
    payer: { entityId: "1" },
    recipient: { card: { email: "a@shop.example", firstName: "A", lastName: "B", cardData } },
  } as never;
}

test("requests that cannot be parsed are answered", async () => {
  const good = toJson(
    CreatePaymentRequestSchema,
    create(CreatePaymentRequestSchema, {
      ...order(idOf("success")),
      paymentMethod: { method: { case: "cc", value: card } },
    }),
  );
  const json = JSON.stringify(good);
  const bodies = [
    json.slice(0, -1),
    json.replace(`"${pan}"`, pan),
    json.replace('"number"', `"${pan}"`),
    json.replace('"expMonth":12', `"expMonth":"${pan}"`),
    json.replace('"UAH"', `{"cvv":"${secrets.cvv}","pan":"${pan}"}`),
    `"${pan}"`,
    pan,
    `${json}${json}`,
  ];
  const types = ["application/json", "application/proto", "application/grpc", "text/plain"];
  for (const body of bodies) {
    for (const type of types) {
      const headers = { "content-type": type, authorization: `Bearer ${secrets.apiKey}` };
      await raw(
        `${gateway.rpcUrl}/payments.v1.PaymentService/CreatePayment`,
        "POST",
        body,
        headers,
      );
      await raw(`${gateway.publicUrl}/graphql`, "POST", body, headers);
    }
  }
  const urls = [
    `/graphql?query=${pan}`,
    `/graphql?query={__typename}&variables={"number":"${pan}"`,
    `/graphql?query={__typename}&watch_token=${secrets.wrongWatchToken}`,
    `/graphql?documentId=${pan}`,
    `/${pan}?token=${secrets.apiKey}`,
    `/callbacks/${pan}/payments`,
  ];
  for (const path of urls) {
    await raw(gateway.publicUrl + encodeURI(path), "GET", undefined, {});
    await raw(gateway.publicUrl + encodeURI(path), "GET", undefined, {
      authorization: `Bearer ${secrets.jwt}`,
    });
    await raw(gateway.rpcUrl + encodeURI(path), "POST", json, {});
    await raw(gateway.adminUrl + encodeURI(path), "GET", undefined, {});
  }
});

/** Sends a request, records the response's headers and body, and resolves with its status. */
async function raw(
  url: string,
  method: string,
  body: string | undefined,
  headers: Record<string, string>,
): Promise<number> {
  const answer = await ask(url, { method, headers, ...(body !== undefined && { body }) });
  errors.push({
    where: `answer of ${method} ${new URL(url).pathname}`,
    text: `${JSON.stringify(answer.headers)}\n${answer.text}`,
  });
  return answer.status;
}

const results = "... on Error { message } ... on PaymentServiceError { code param errorId }";
const createPayment = `mutation ($input: CreatePaymentInput!) {
  createPayment(input: $input) { __typename ... on Payment { id } ${results}
    ... on InvalidInputError { fields { path message } } }
}`;

/** A payment as GraphQL input. */
const input = (externalId: string, method: (typeof methods)[number]) => ({
  ...order(externalId),
  mode: "DIRECT",
  paymentMethod: { method: { [method.case]: method.value } },
});

type Send = (query: string, variables?: Record<string, unknown>) => Promise<string>;

const edges: Record<string, (after: (fn: () => unknown) => void) => Send> = {
  HTTP: () => (query, variables) => post(query, variables, {}),
  SSE: () => (query, variables) => post(query, variables, { accept: "text/event-stream" }),
  WebSocket: (after) => {
    const connectionParams = { authorization: `Bearer ${secrets.jwt}` };
    const client = socketClient(gateway, { connectionParams });
    after(() => client.dispose());
    return async (query, variables) => {
      try {
        const { value } = await client.iterate({ query, ...(variables && { variables }) }).next();
        return JSON.stringify(value);
      } catch (refused) {
        return JSON.stringify(refused);
      }
    };
  },
};

async function post(
  query: string,
  variables: Record<string, unknown> | undefined,
  headers: Record<string, string>,
): Promise<string> {
  const answer = await postGraphql(gateway, query, { ...as(secrets.apiKey, headers), variables });
  return `${JSON.stringify([...answer.headers])}\n${await answer.text()}`;
}

for (const [name, connect] of Object.entries(edges)) {
  test(`operations by ${name} succeed or fail by the service's behaviour, or are refused`, async (t) => {
    const send = connect((fn) => t.after(fn));
    const before = requests;
    const told: string[] = [];
    for (const behaviour of behaviours) {
      if (behaviour === "limited") continue;
      told.push(
        ...(await Promise.all(
          methods.map((method) => send(createPayment, { input: input(idOf(behaviour), method) })),
        )),
      );
    }
    assert.ok(requests - before > 40, `${requests - before} requests`);
    const all = told.join("\n");
    for (const type of ["Payment", "PaymentServiceError", "OutcomeUnknownError"]) {
      assert.match(all, new RegExp(`"__typename":"${type}"`));
    }

    const good = input(idOf("success"), methods[0]);
    const literal = `mutation { createPayment(input: {amount: "1", currency: "UAH", mode: DIRECT,
      externalId: "e", paymentMethod: {method: {cc: {number: "${pan}", cvv: "${secrets.cvv}",
      expMonth: 12, expYear: 2031}}}}) { __typename ${results} } }`;
    // Others are refused in test/graphql/input.test.ts: these have a secret where a message may quote it.
    const wrong: [query: string, variables?: Record<string, unknown>][] = [
      [createPayment, { input: { ...good, amount: pan.repeat(2) } }],
      [createPayment, { input: { ...good, paymentMethod: { method: { cc: pan } } } }],
      [createPayment, { input: { ...good, [pan]: secrets.cvv } }],
      [literal.replace(`"${pan}"`, pan)],
      [literal.replace(") {", `, other: "${pan}") {`)],
      [literal.slice(0, literal.indexOf(pan) + 10)],
      [literal.replace(`"${pan}"`, `"${pan} "`)],
    ];
    for (const [query, variables] of wrong) {
      const answered = await send(query, variables);
      assert.match(answered, /"code":|InvalidInputError/);
      told.push(answered);
    }
    told.push(await send(literal));
    for (const answered of told) errors.push({ where: `answer by ${name}`, text: answered });
  });
}

test("GraphQL refuses callers without valid credentials or scopes", async () => {
  for (const token of [secrets.wrongKey, secrets.expiredJwt, secrets.customerJwt]) {
    const headers = { authorization: `Bearer ${token}`, "x-customer-auth": secrets.customerAuth };
    const answered = await post(`{ payment(externalId: "e") { id } }`, {}, headers);
    assert.match(answered, /UNAUTHENTICATED|FORBIDDEN/);
    errors.push({ where: "answer to the refused", text: answered });
  }
  const client = socketClient(gateway, {
    url: `${gateway.publicUrl.replace("http", "ws")}/graphql?watch_token=${secrets.wrongWatchToken}`,
  });
  await assert.rejects(client.iterate({ query: "{ __typename }" }).next(), (closed) => {
    const { code, reason } = closed as { code: number; reason: string };
    assert.equal(code, 4401);
    errors.push({ where: "close of a WebSocket", text: reason });
    return true;
  });
});

const goodCallback = JSON.stringify({
  external_id: "success-callback",
  operation: "payment",
  details: { payment_id: "p-c", status: "success", amount: { pan } },
  payment_method: { type: "cc_token", cc_token: { token: secrets.answeredToken } },
  card: { full_number: secrets.fullNumber, cvv: secrets.cvv },
});
const letterCallback = JSON.stringify({ card: { number: pan, cvv: secrets.cvv }, token: pan });

test("callbacks are answered: good, repeated, forged, not understood, too long", async () => {
  const [good, letter] = [goodCallback, letterCallback];
  const signature = (body: string) => ({
    "x-service-signature": sign(Buffer.from(body), secrets.password),
  });
  const url = `${gateway.publicUrl}/callbacks/default/payments`;
  assert.equal(await raw(url, "POST", good, signature(good)), 200);
  assert.equal(await raw(url, "POST", good, signature(good)), 200);
  assert.equal(await raw(url, "POST", letter, signature(letter)), 200);
  assert.equal(await raw(url, "POST", `${pan}{`, signature(`${pan}{`)), 200);
  assert.equal(await raw(url, "POST", good, signature(letter)), 401);
  assert.equal(await raw(url, "POST", good, { "x-service-signature": secrets.password }), 401);
  assert.equal(await raw(url, "POST", good, {}), 401);
  const long = letter.padEnd(1024 * 1024 + 1);
  assert.equal(await raw(url, "POST", long, signature(long)), 413);
});

test("watches deliver events when calls carry secrets in tracing headers", async (t) => {
  const hostile = {
    traceparent: `00-${"ab".repeat(16)}-${"cd".repeat(8)}-01`,
    tracestate: `shop=${pan}`,
    baggage: `number=${pan},cvv=${secrets.cvv}`,
    "x-request-id": pan,
  };
  const externalId = idOf("success");
  const gone = new AbortController();
  t.after(() => gone.abort());
  const watches = ["json", "grpc"].map((name) => {
    const payments = clientOf(PaymentService, name);
    const options = as(secrets.apiKey, hostile);
    const signal = AbortSignal.any([options.signal, gone.signal]);
    return payments.watchPayment({ externalId }, { ...options, signal })[Symbol.asyncIterator]();
  });
  const query = `subscription { paymentUpdated(externalId: "${externalId}") { source } }`;
  const { headers } = as(secrets.apiKey, { ...hostile, accept: "text/event-stream" });
  const answer = await postGraphql(gateway, query, { headers, signal: gone.signal });
  const sse = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  const events = watches.map((watch) => watch.next());
  const payments = clientOf(PaymentService, "json");
  const paid = { ...direct("success", methods[0]), externalId };
  await payments.createPayment(paid, as(secrets.apiKey, hostile));
  for (const event of await Promise.all(events)) assert.equal(event.done, false);
  for (let seen = ""; !seen.includes("RESPONSE"); seen += (await sse?.read())?.value ?? "");
  await collector.span(({ traceId }) => traceId === "ab".repeat(16));
});

test("last of all, a 429 of the service ends calls with RESOURCE_EXHAUSTED", async () => {
  const payments = clientOf(PaymentService, "grpc");
  for (const method of methods) {
    const call = payments.createPayment(direct("limited", method), as(secrets.apiKey));
    const error = await failed("limited", call);
    assert.equal(error?.code, Code.ResourceExhausted);
  }
});

test("no secret appears in the log, the metrics, the traces or the errors that callers receive", async () => {
  const places = [{ where: "log", text: logged.join("") }, ...errors];
  for (const path of ["metrics", "dead-letters", "readyz", "healthz"]) {
    const response = await fetch(`${gateway.adminUrl}/${path}`);
    places.push({ where: path, text: await response.text() });
  }
  const holds = (where: string, what: RegExp) =>
    places.some((place) => place.where === where && what.test(place.text));
  // Spans are exported in the order in which they end: once this one arrives, all have.
  const traceId = "ef".repeat(16);
  const payments = clientOf(PaymentService, "json");
  const { headers } = as(secrets.apiKey, { traceparent: `00-${traceId}-${"12".repeat(8)}-01` });
  await payments.getPayment({ externalId: "success-callback" }, { headers });
  await collector.span((span) => span.traceId === traceId);
  places.push(...tracesOf(collector));
  const { length } = collector.spans;
  assert.ok(length > 500, `${length} spans`);
  assert.ok(collector.spans.some(({ name }) => name === "deliver event"));
  assert.ok(holds("metrics", /trace_spans_total\{outcome="exported"\} \d{3}/));
  assert.ok(holds("metrics", /trace_spans_total\{outcome="(dropped|failed)"\} 0\n/));
  assert.ok(logged.length > 200, `${logged.length} records`);
  assert.ok(errors.length > 200, `${errors.length} answers`);
  assert.ok(holds("log", /"verdict":"dead_letter"/));
  assert.ok(holds("metrics", /upstream_requests_total\{/));
  assert.ok(holds("dead-letters", /"reason"/));
  assert.deepEqual(findCanaries(secrets, places), []);
});

test("no secret is stored in Redis, under any key", { skip: withoutRedis }, async () => {
  assert.ok(redis);
  const places = await placesIn(redis);
  assert.ok(places.length > 100, `${places.length} keys`);
  for (const kind of ["events", "record:payment:success", "record:letter:", "record:key:"]) {
    assert.ok(
      places.some(({ where }) => where.includes(`:${kind}`)),
      kind,
    );
  }
  assert.deepEqual(findCanaries(secrets, places), []);
});

test("control: with sealing off, the same search finds secrets in Redis", {
  skip: withoutRedis,
}, async (t) => {
  assert.ok(redis);
  const off: Seal = { close: (text) => Buffer.from(text), open: (text) => Buffer.from(text) };
  const connector = await connected(redis.url);
  const log = createRedisLedger({
    redis: connector,
    prefix: "unsealed",
    retentionMs: 60_000,
    keyringOf: () => ({ events: off, deadLetters: off }),
  });
  t.after(async () => {
    await log.close();
    await connector.close();
  });
  const understood = parseCallback(EventKind.PAYMENT, Buffer.from(goodCallback));
  assert.ok(understood.entry);
  await log.append("default", understood.entry);
  const body = Buffer.from(letterCallback).toString("base64");
  const letter = { id: "l", kind: EventKind.PAYMENT, body, reason: "r", receivedAtMs: 0 };
  await log.letters.addDeadLetter("default", letter);
  const found = findCanaries(secrets, await placesIn(redis)).join("\n");
  for (const where of ["events", "record:payment:success-callback"]) {
    assert.match(found, new RegExp(`answeredToken: plain, unsealed:\\{default\\}:${where}`));
  }
  assert.match(found, /pan: encoded, unsealed:\{default\}:record:letter:/);
});

async function placesIn({ port }: RedisServer): Promise<Place[]> {
  const held = await dumpRedis(port);
  return [...held].map(([key, value]) => ({ where: key, text: `${key}\n${value}` }));
}

test("control: the search finds every secret in every form", () => {
  for (const [name, secret] of Object.entries(secrets)) {
    for (const form of formsOf(secret)) {
      const found = findCanaries({ [name]: secret }, [{ where: "here", text: form }]);
      assert.equal(found.length > 0, true, `${name} as ${form}`);
    }
  }
  let leak = "";
  const log = createLogger("info", {
    write(line) {
      leak += line;
    },
  });
  log.info({ method: "cc", text: `the request was {"number":"${pan}","cvv":"${secrets.cvv}"}` });
  assert.deepEqual(
    new Set(findCanaries(secrets, [{ where: "log", text: leak }]).map((hit) => hit.split(":")[0])),
    new Set(["pan", "cvv"]),
  );
});

/** All that a collector received, raw and decoded. */
function tracesOf({ raw, spans, resources }: Collector): Place[] {
  return [
    { where: "traces", text: raw() },
    { where: "spans", text: JSON.stringify([spans, resources]) },
  ];
}

test("control: the search finds every secret in a span's attributes", async () => {
  const leaky = await startCollector();
  const { tracing: settings } = readConfig(tracedBy(leaky));
  const tracing = await createTracing(settings, noReport);
  for (const [name, secret] of Object.entries(secrets)) {
    const span = tracing.start(name, { kind: "internal", attributes: { "url.path": secret } });
    span.end();
  }
  await tracing.shutdown(timeoutMs);
  leaky.close();
  const found = findCanaries(secrets, tracesOf(leaky)).map((hit) => hit.split(":")[0]);
  assert.deepEqual(new Set(found), new Set(Object.keys(secrets)));
});

function formsOf(secret: string): string[] {
  const json = JSON.stringify({ a: secret });
  if (secret.length < 8) return [`"${secret}"`, `code ${secret}.`, json];
  const grouped = /^\d{16}$/.test(secret)
    ? [" ", "-", ".", "\u00a0", "%20"].map((by) => secret.replace(/(\d{4})(?=\d)/g, `$1${by}`))
    : [];
  return [
    secret,
    secret.toUpperCase(),
    json,
    JSON.stringify(json),
    encodeURIComponent(secret),
    Buffer.from(secret).toString("hex"),
    ...["", "x", "xy", "xyz"].flatMap((before) => [
      Buffer.from(`${before}${secret}${before}`).toString("base64"),
      Buffer.from(`${before}${secret}${before}`).toString("base64url"),
    ]),
    ...grouped,
  ];
}
