import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Code, createClient, type Transport } from "@connectrpc/connect";
import {
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { createClient as createWebSocketClient } from "graphql-ws";
import WebSocket from "ws";
import type { Gateway } from "../../src/app/gateway.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { startTestGateway } from "../start.ts";
import { inTime } from "../until.ts";
import { paymentOf } from "./callers.ts";

/** The answer to a call, in the parts that a repeat shares or that tell it is one. */
interface Answered {
  readonly paymentId: string | undefined;
  readonly header?: string | null;
  readonly extensions?: unknown;
  readonly errors?: unknown;
  readonly refused?: unknown;
}

const good = "4111111111111111";
const insufficientFunds = "4000000000000010";

let gateway: Gateway;
before(async () => {
  gateway = await startTestGateway();
});
after(() => gateway.stop());

const paths: Record<string, () => Transport> = {
  gRPC: () => createGrpcTransport({ baseUrl: gateway.rpcUrl }),
  "gRPC by Connect's own path": () =>
    createGrpcTransport({
      baseUrl: gateway.rpcUrl,
      sendCompression: compressionGzip,
      compressMinBytes: 0,
    }),
  "gRPC-Web": () => createGrpcWebTransport({ baseUrl: gateway.rpcUrl, httpVersion: "1.1" }),
  Connect: () => createConnectTransport({ baseUrl: gateway.rpcUrl, httpVersion: "1.1" }),
};

for (const [name, transport] of Object.entries(paths)) {
  test(`by ${name}, only the answer to a repeat has the header idempotent-replayed`, async () => {
    const payments = createClient(PaymentService, transport());
    const pay = async (externalId: string, card: string, key: string) => {
      let told: Headers | undefined;
      const options = {
        ...inTime(),
        headers: { "idempotency-key": key },
        onHeader: (headers: Headers) => (told = headers),
      };
      const request = paymentOf(externalId, card);
      const { id, code } = await payments.createPayment(request, options).then(
        ({ payment }) => ({ id: payment?.id, code: undefined }),
        ({ code, metadata }) => {
          told ??= metadata;
          return { id: undefined, code };
        },
      );
      return { id, code, replayed: told?.get("idempotent-replayed") ?? null };
    };
    const order = `order by ${name}`;
    const key = name.replaceAll(/\W/g, "");
    const first = await pay(order, good, key);
    assert.deepEqual([first.code, first.replayed], [undefined, null]);
    assert.deepEqual(await pay(order, good, `"${key}"`), { ...first, replayed: "true" });
    assert.equal((await pay(order, insufficientFunds, key)).code, Code.AlreadyExists);
    const refusal = { id: undefined, code: Code.AlreadyExists };
    assert.deepEqual(await pay(order, good, `other-${key}`), { ...refusal, replayed: null });
    assert.deepEqual(await pay(order, good, `other-${key}`), { ...refusal, replayed: "true" });
  });
}

test("over WebSocket a repeat with the key in its input makes no second payment", async () => {
  const first = await bySocket("socket", "socket");
  assert.deepEqual(first, { paymentId: first.paymentId });
  assert.ok(first.paymentId);
  const again = { ...first, extensions: { idempotentReplayed: true } };
  assert.deepEqual(await bySocket("socket", '"socket"'), again);
  assert.equal(await countSent("socket"), 1);
});

for (const [name, headers] of Object.entries({
  "on the fast path": {},
  "by Yoga": { "content-type": "application/json; charset=UTF-8" },
})) {
  test(`${name}, a key in the input and in the header is the same key`, async () => {
    const order = `http ${name}`;
    const key = `k-${name.replaceAll(" ", "-")}`;
    const first = await byHttp(order, key, undefined, headers);
    assert.deepEqual(first, { paymentId: first.paymentId, header: null });
    assert.ok(first.paymentId);
    const again = { ...first, header: "true", extensions: { idempotentReplayed: true } };
    assert.deepEqual(await byHttp(order, undefined, key, headers), again);
    assert.deepEqual(await byHttp(order, `"${key}"`, key, headers), again);
    const { header: _, ...bySocketToo } = again;
    assert.deepEqual(await bySocket(order, key), bySocketToo);
    assert.equal(await countSent(order), 1);
  });
}

test("a header and an input with different keys are refused, and nothing is sent", async () => {
  const message = "is not the key of the Idempotency-Key header";
  const { refused } = await byHttp("different", "one", "two");
  assert.deepEqual(refused, {
    fields: [{ path: "idempotencyKey", message }],
    message: `idempotencyKey: ${message}`,
  });
  const { refused: malformed } = await byHttp("different", "not a key");
  assert.equal((malformed as { fields: { path: string }[] }).fields[0]?.path, "idempotencyKey");
  assert.equal(await countSent("different"), 0);
});

test("several mutations of one operation may each have a key", async () => {
  const mutation = (alias: string) => `${alias}: createPayment(input: ${inputOf(alias, alias)}) {
    ... on Payment { id }
  }`;
  const query = `mutation { ${mutation("left")} ${mutation("right")} }`;
  const [first, second] = [await post({ query }), await post({ query })];
  assert.deepEqual(second.body.data, first.body.data);
  assert.deepEqual(
    [first.body.extensions, second.body.extensions],
    [undefined, { idempotentReplayed: true }],
  );
  assert.deepEqual([await countSent("left"), await countSent("right")], [1, 1]);
});

function inputOf(externalId: string, key?: string): string {
  return `{
    amount: "10.10", currency: "UAH", mode: DIRECT, externalId: "${externalId}",
    customer: { email: "customer@shop.example" }
    ${key === undefined ? "" : `idempotencyKey: ${JSON.stringify(key)}`}
    paymentMethod: { method: { cc: {
      number: "${good}", cvv: "123", expMonth: 12, expYear: 2031
    } } }
  }`;
}

function mutationOf(externalId: string, key?: string): string {
  return `mutation {
    createPayment(input: ${inputOf(externalId, key)}) {
      ... on Payment { id }
      ... on InvalidInputError { message fields { path message } }
    }
  }`;
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects
type Result = any;

function answeredBy({ data, errors, extensions }: Result): Answered {
  const { id, ...refused } = data?.createPayment ?? {};
  return {
    paymentId: id,
    ...(extensions && { extensions }),
    ...(errors && { errors }),
    ...(Object.keys(refused).length > 0 && { refused }),
  };
}

async function post(body: object, headers: Record<string, string> = {}) {
  const response = await fetch(`${gateway.publicUrl}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
    ...inTime(),
  });
  const header = response.headers.get("idempotent-replayed");
  return { body: (await response.json()) as Result, header };
}

async function byHttp(
  externalId: string,
  inInput?: string,
  inHeader?: string,
  headers: Record<string, string> = {},
): Promise<Answered> {
  const query = mutationOf(externalId, inInput);
  const { body, header } = await post(
    { query },
    { ...headers, ...(inHeader !== undefined && { "idempotency-key": inHeader }) },
  );
  return { ...answeredBy(body), header };
}

async function bySocket(externalId: string, key: string): Promise<Answered> {
  const client = createWebSocketClient({
    url: `${gateway.publicUrl.replace("http", "ws")}/graphql`,
    webSocketImpl: WebSocket,
    retryAttempts: 0,
  });
  try {
    const { value } = await client.iterate({ query: mutationOf(externalId, key) }).next();
    return answeredBy(value);
  } finally {
    await client.dispose();
  }
}

/** Number of requests for this external_id that the service received. */
async function countSent(externalId: string): Promise<number> {
  const query = new URLSearchParams({ type: "request", external_id: externalId });
  const response = await fetch(`${gateway.sandboxUrl}/__sandbox/journal?${query}`, {
    headers: { authorization: `Basic ${btoa("sandbox:sandbox-password")}` },
  });
  return ((await response.json()) as { entries: unknown[] }).entries.length;
}
