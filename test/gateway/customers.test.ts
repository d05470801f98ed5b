import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { beforeEach, test } from "node:test";
import { type CallOptions, Code, ConnectError } from "@connectrpc/connect";
import { SubscriptionService } from "../../src/gen/payments/v1/subscription_service_pb.ts";
import { WalletService } from "../../src/gen/payments/v1/wallet_service_pb.ts";
import { accessEnv, newKey, scratch, signingKey, signToken } from "../auth/issuer.ts";
import { ofSuite } from "../of-suite.ts";
import { startBefore } from "../start.ts";
import { clientOf, graphql, socketClient } from "./callers.ts";

const files = scratch();
const signing = await signingKey("es");
const claims = { customer_external_id: "customer/1", scope: "wallet:pan" };
const customer = await signToken(signing, claims);
const [key, panKey] = [newKey(), newKey()];
const scopes = ["wallet:read", "wallet:write", "subscriptions:write"];
const keyEntries = [
  { name: "shop", key, scopes },
  { name: "pan", key: panKey, scopes: [...scopes, "wallet:pan"] },
];
const uuid = "6f1f3c52-0d0a-4b8e-8a53-1c2f4f0f7a01";
const number = "4111111111111111";

/** Requests that reached the fake payments service, which returns the same card for everyone. */
const received: { line: string; headers: IncomingHttpHeaders }[] = [];
const upstream = createServer((request, response) => {
  received.push({ line: `${request.method} ${request.url}`, headers: request.headers });
  request.resume();
  response.writeHead(200, { "content-type": "application/json" });
  response.end(
    `{"card":{"full_number":"${number}","mask":"411111******1111"},"option_id":"${uuid}"}`,
  );
});
const gateway = ofSuite(() =>
  startBefore(upstream, {
    ...accessEnv(files, keyEntries, signing),
    RATE_LIMIT_INITIAL: "1000",
  }),
);
beforeEach(() => received.splice(0));

interface Identity {
  readonly externalId?: string;
  readonly authToken?: string;
  readonly rid?: string;
}
type Options = CallOptions & { readonly headers: Record<string, string> };

const as = (token: string, more: Record<string, string> = {}): Options => ({
  headers: { authorization: `Bearer ${token}`, ...more },
});
const optionId = uuid;
const subscriptionId = uuid;

/** Every call about a customer. */
const calls: readonly ((customer: Identity | undefined, options: Options) => Promise<unknown>)[] = [
  (of, options) => wallet().findWalletItems(about(of), options),
  (of, options) => wallet().getConfirmationStatus({ ...about(of), optionId }, options),
  (of, options) => wallet().deleteWalletItem({ ...about(of), optionId, type: "card" }, options),
  (of, options) => subscriptions().updateSubscription({ ...about(of), subscriptionId }, options),
  (of, options) =>
    subscriptions().deactivateSubscription({ ...about(of), subscriptionId }, options),
  async (of, { headers }) => {
    const query = "query ($of: CustomerInput) { walletItems(customer: $of) { optionId } }";
    const { errors } = await graphql(gateway, query, { headers, variables: { of } });
    if (errors) throw new ConnectError(errors[0].message, codes[errors[0].extensions.code]);
  },
];
const codes: Record<string, Code> = {
  FORBIDDEN: Code.PermissionDenied,
  BAD_USER_INPUT: Code.InvalidArgument,
};
const wallet = () => clientOf(WalletService, gateway);
const subscriptions = () => clientOf(SubscriptionService, gateway);
const about = (customer: Identity | undefined) => (customer ? { customer } : {});

test("a customer's calls use the customer in the token's claim", async () => {
  for (const call of calls) await call(undefined, as(customer));
  await wallet().findWalletItems({ customer: { externalId: "customer/1" } }, as(customer));
  assert.equal(received.length, calls.length + 1);
  for (const { line, headers } of received) {
    const { searchParams } = new URL(line.split(" ")[1] ?? "", "http://upstream");
    assert.deepEqual(searchParams.getAll("external_id"), ["customer/1"], line);
    assert.equal(headers["x-customer-auth"] ?? headers["x-customer-rid"], undefined);
    assert.match(headers.authorization ?? "", /^Basic /, "the caller's token stays here");
  }
});

test("a customer's call that names another customer is refused and not sent", async () => {
  const denied = { code: Code.PermissionDenied };
  for (const other of [{ externalId: "customer/2" }, { authToken: "token" }]) {
    for (const call of calls) await assert.rejects(call(other, as(customer)), denied);
  }
  for (const other of [
    { externalId: "customer/1 " },
    { rid: uuid },
    { externalId: "customer/1", authToken: "token" },
    { externalId: "customer/1", rid: uuid },
  ]) {
    // An X-CUSTOMER-AUTH header does not allow another customer either.
    for (const options of [as(customer), as(customer, { "x-customer-auth": "token" })]) {
      await assert.rejects(wallet().findWalletItems({ customer: other }, options), denied);
    }
  }
  assert.equal(received.length, 0);
});

test("X-CUSTOMER-AUTH is forwarded unchanged and alone identifies the customer", async () => {
  const token = "eyJ.customer-token.sig==";
  const headers = { "x-customer-auth": token };
  for (const call of calls) await call({ externalId: "somebody" }, as(key, headers));
  await wallet().findWalletItems({}, as(key, headers));
  await wallet().findWalletItems({}, as(customer, headers));
  await subscriptions().deactivateSubscription(
    { customer: { rid: uuid }, subscriptionId },
    as(key, headers),
  );
  assert.equal(received.length, calls.length + 3);
  for (const { line, headers } of received) {
    assert.equal(headers["x-customer-auth"], token);
    assert.equal(headers["x-customer-rid"], undefined);
    assert.doesNotMatch(line, /external_id/);
  }
});

test("a processing token is sent together with the customer's external_id", async () => {
  for (const call of calls) await call({ authToken: "processing", externalId: "jo" }, as(key));
  assert.equal(received.length, calls.length);
  for (const { line, headers } of received) {
    assert.equal(headers["x-customer-auth"], "processing");
    assert.match(line, /[?&]external_id=jo(&|$)/);
  }
});

test("a call without a customer is INVALID_ARGUMENT and not sent", async () => {
  for (const call of calls) {
    const message = /customer: must tell who the customer is/;
    await assert.rejects(call({}, as(key)), { code: Code.InvalidArgument, message });
  }
  assert.equal(received.length, 0);
  // Control: a caller whose token names the customer may leave it out in the same way.
  await wallet().findWalletItems({ customer: {} }, as(customer));
  assert.equal(received.length, 1);
});

test("an X-CUSTOMER-RID header of a caller is never forwarded", async () => {
  const headers = { "x-customer-rid": uuid };
  for (const call of calls) await call({ externalId: "somebody" }, as(key, headers));
  await wallet().findWalletItems({}, as(customer, headers));
  await subscriptions().deactivateSubscription({ subscriptionId }, as(key, headers));
  assert.equal(received.length, calls.length + 2);
  for (const { headers } of received) assert.equal(headers["x-customer-rid"], undefined);
  // Control: as a field in a trusted service's request, it does reach the payments service.
  const request = { customer: { rid: uuid }, subscriptionId };
  await subscriptions().deactivateSubscription(request, as(key));
  assert.equal(received.at(-1)?.headers["x-customer-rid"], uuid);
});

test("a customer token with characters that no header allows is refused and not sent", async () => {
  // A WebSocket client sends it in JSON, which allows all characters.
  const client = socketClient(gateway, {
    connectionParams: {
      authorization: `Bearer ${key}`,
      "x-customer-auth": "token\r\nx-customer-rid: 1",
    },
  });
  const query = `mutation {
    deactivateSubscription(input: { subscriptionId: "${uuid}" }) { __typename }
  }`;
  const { value } = await client.iterate({ query }).next();
  await client.dispose();
  assert.match(JSON.stringify(value), /InvalidInputError/);
  assert.equal(received.length, 0);
});
