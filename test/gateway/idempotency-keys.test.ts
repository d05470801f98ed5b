import assert from "node:assert/strict";
import { test } from "node:test";
import { Code } from "@connectrpc/connect";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { ofSuite } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { inTime } from "../until.ts";
import {
  clientOf,
  countSent,
  graphql,
  paymentInput,
  paymentRequest,
  socketClient,
  transports,
} from "./callers.ts";

const good = "4111111111111111";
const insufficientFunds = "4000000000000010";

const gateway = ofSuite(startTestGateway);

for (const by of Object.keys(transports) as (keyof typeof transports)[]) {
  test(`by ${by}, only the answer to a repeat has the header idempotent-replayed`, async () => {
    const payments = clientOf(PaymentService, gateway, by);
    const pay = async (card: string, key: string) => {
      let told: Headers | undefined;
      const onHeader = (headers: Headers) => (told = headers);
      const options = { ...inTime(), headers: { "idempotency-key": key }, onHeader };
      const { id, code } = await payments
        .createPayment(paymentRequest(`by ${by}`, card), options)
        .then(
          ({ payment }) => ({ id: payment?.id, code: undefined }),
          ({ code, metadata }) => {
            told ??= metadata;
            return { id: undefined, code };
          },
        );
      return { id, code, replayed: told?.get("idempotent-replayed") ?? null };
    };
    const key = by.replaceAll(/\W/g, "");
    const first = await pay(good, key);
    assert.deepEqual([first.code, first.replayed], [undefined, null]);
    assert.deepEqual(await pay(good, `"${key}"`), { ...first, replayed: "true" });
    assert.equal((await pay(insufficientFunds, key)).code, Code.AlreadyExists);
    const refusal = { id: undefined, code: Code.AlreadyExists };
    assert.deepEqual(await pay(good, `other-${key}`), { ...refusal, replayed: null });
    assert.deepEqual(await pay(good, `other-${key}`), { ...refusal, replayed: "true" });
  });
}

const inputOf = (externalId: string, key?: string) =>
  paymentInput(externalId, good, key === undefined ? "" : `idempotencyKey: ${JSON.stringify(key)}`);

const mutationOf = (externalId: string, key?: string) => `mutation {
  createPayment(input: ${inputOf(externalId, key)}) {
    ... on Payment { id }
    ... on InvalidInputError { fields { path message } }
  }
}`;

/** By POST, with a key in the input, in the header, or in both. */
const byHttp = (externalId: string, inInput?: string, inHeader?: string) =>
  graphql(gateway, mutationOf(externalId, inInput), {
    headers: { ...(inHeader !== undefined && { "idempotency-key": inHeader }) },
  });

async function bySocket(externalId: string, key: string) {
  const client = socketClient(gateway);
  const { value } = await client.iterate({ query: mutationOf(externalId, key) }).next();
  await client.dispose();
  return value;
}

test("by HTTP and by WebSocket, a key in the input and in the header is the same key", async () => {
  const [order, key] = ["both", "k-both"];
  const { response, data, extensions } = await byHttp(order, key);
  assert.ok(data.createPayment.id);
  assert.deepEqual([response.headers.get("idempotent-replayed"), extensions], [null, undefined]);
  for (const given of [undefined, `"${key}"`]) {
    const again = await byHttp(order, given, key);
    assert.deepEqual([again.data, again.extensions], [data, { idempotentReplayed: true }]);
    assert.equal(again.response.headers.get("idempotent-replayed"), "true");
  }
  const bySocketToo = { data, extensions: { idempotentReplayed: true } };
  assert.deepEqual(await bySocket(order, key), bySocketToo);
  assert.equal(await countSent(gateway, order), 1);
});

test("several mutations of one operation may each have a key", async () => {
  const mutation = (alias: string) => `${alias}: createPayment(input: ${inputOf(alias, alias)}) {
    ... on Payment { id }
  }`;
  const query = `mutation { ${mutation("left")} ${mutation("right")} }`;
  const [first, second] = [await graphql(gateway, query), await graphql(gateway, query)];
  assert.deepEqual(second.data, first.data);
  const extensions = [first.extensions, second.extensions];
  assert.deepEqual(extensions, [undefined, { idempotentReplayed: true }]);
  for (const alias of ["left", "right"]) assert.equal(await countSent(gateway, alias), 1);
});
