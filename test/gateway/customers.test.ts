import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { after, before, beforeEach, test } from "node:test";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { createClient as createWsClient } from "graphql-ws";
import WebSocket from "ws";
import type { Gateway } from "../../src/app/gateway.ts";
import { SubscriptionService } from "../../src/gen/payments/v1/subscription_service_pb.ts";
import { WalletService } from "../../src/gen/payments/v1/wallet_service_pb.ts";
import {
  audience,
  issuer,
  keysText,
  newKey,
  scratch,
  signingKey,
  signToken,
} from "../auth/issuer.ts";
import { startBefore } from "../start.ts";

const files = scratch();
const signing = await signingKey("es");
const customer = await signToken(signing, {
  customer_external_id: "customer/1",
  scope: "wallet:pan",
});
const key = newKey();
const panKey = newKey();
const scopes = ["wallet:read", "wallet:write", "subscriptions:write"];
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
let gateway: Gateway;
before(async () => {
  gateway = await startBefore(upstream, {
    AUTH_MODE: "keys,jwt",
    API_KEYS_FILE: files.write(
      "keys",
      keysText([
        { name: "shop", key, scopes },
        { name: "pan", key: panKey, scopes: [...scopes, "wallet:pan"] },
      ]),
    ),
    AUTH_JWKS_FILE: files.write("jwks", JSON.stringify({ keys: [signing.jwk] })),
    AUTH_ISSUER: issuer,
    AUTH_AUDIENCE: audience,
    RATE_LIMIT_INITIAL: "1000",
  });
});
after(async () => {
  await gateway.stop();
});
beforeEach(() => received.splice(0));

const as = (token: string, more: Record<string, string> = {}) => ({
  headers: { authorization: `Bearer ${token}`, ...more },
});
const transport = () => createConnectTransport({ baseUrl: gateway.rpcUrl, httpVersion: "1.1" });
const wallet = () => createClient(WalletService, transport());
const subscriptions = () => createClient(SubscriptionService, transport());

const externalId = (value: string) => ({ externalId: value });
const authToken = (value: string) => ({ authToken: value });
const rid = (value: string) => ({ rid: value });

test("a customer's wallet and subscription calls use the customer in the token's claim", async () => {
  const options = as(customer);
  await wallet().findWalletItems({}, options);
  await wallet().getConfirmationStatus({ optionId: uuid }, options);
  await wallet().deleteWalletItem({ optionId: uuid, type: "card" }, options);
  await subscriptions().updateSubscription({ subscriptionId: uuid, autoRenew: true }, options);
  await subscriptions().deactivateSubscription({ subscriptionId: uuid }, options);
  await wallet().findWalletItems({ customer: externalId("customer/1") }, options);
  await graphql("{ walletItems { optionId } }", options.headers);
  assert.equal(received.length, 7);
  for (const { line, headers } of received) {
    const { searchParams } = new URL(line.split(" ")[1] ?? "", "http://upstream");
    assert.deepEqual(searchParams.getAll("external_id"), ["customer/1"], line);
    assert.equal(headers["x-customer-auth"] ?? headers["x-customer-rid"], undefined);
    assert.match(headers.authorization ?? "", /^Basic /, "the caller's token stays here");
  }
});

test("a customer's call that names another customer is refused and not sent", async () => {
  const others = [
    externalId("customer/2"),
    externalId("customer/1 "),
    authToken("token"),
    rid(uuid),
    { ...externalId("customer/1"), ...authToken("token") },
    { ...externalId("customer/1"), ...rid(uuid) },
  ];
  for (const other of others) {
    const calls = [
      wallet().findWalletItems({ customer: other }, as(customer)),
      wallet().getConfirmationStatus({ customer: other, optionId: uuid }, as(customer)),
      wallet().deleteWalletItem({ customer: other, optionId: uuid, type: "card" }, as(customer)),
      subscriptions().updateSubscription({ customer: other, subscriptionId: uuid }, as(customer)),
      subscriptions().deactivateSubscription(
        { customer: other, subscriptionId: uuid },
        as(customer),
      ),
      // An X-CUSTOMER-AUTH header does not allow another customer either.
      wallet().findWalletItems({ customer: other }, as(customer, { "x-customer-auth": "token" })),
    ];
    const refused = calls.map((call) => assert.rejects(call, { code: Code.PermissionDenied }));
    await Promise.all(refused);
  }
  for (const input of ['{ externalId: "customer/2" }', '{ authToken: "token" }']) {
    const { errors } = await graphql(
      `{ walletItems(customer: ${input}) { optionId } }`,
      as(customer).headers,
    );
    assert.equal(errors?.[0]?.extensions.code, "FORBIDDEN");
  }
  assert.equal(received.length, 0);
});

test("X-CUSTOMER-AUTH is forwarded unchanged and alone identifies the customer", async () => {
  const token = "eyJ.customer-token.sig==";
  const headers = { "x-customer-auth": token };
  await wallet().findWalletItems({ customer: externalId("somebody") }, as(key, headers));
  await wallet().findWalletItems({}, as(key, headers));
  await wallet().findWalletItems({}, as(customer, headers));
  await subscriptions().deactivateSubscription(
    { customer: rid(uuid), subscriptionId: uuid },
    as(key, headers),
  );
  await graphql("{ walletItems { optionId } }", as(key, headers).headers);
  assert.equal(received.length, 5);
  for (const { line, headers } of received) {
    assert.equal(headers["x-customer-auth"], token);
    assert.equal(headers["x-customer-rid"], undefined);
    assert.doesNotMatch(line, /external_id/);
  }
});

test("a processing token is sent together with the customer's external_id", async () => {
  const both = { ...authToken("processing"), ...externalId("somebody") };
  await wallet().findWalletItems({ customer: both }, as(key));
  await subscriptions().deactivateSubscription({ customer: both, subscriptionId: uuid }, as(key));
  await graphql(
    '{ walletItems(customer: { authToken: "processing", externalId: "somebody" }) { optionId } }',
    as(key).headers,
  );
  assert.equal(received.length, 3);
  for (const { line, headers } of received) {
    assert.equal(headers["x-customer-auth"], "processing");
    assert.match(line, /[?&]external_id=somebody$/);
  }
});

test("a call without a customer is INVALID_ARGUMENT and not sent", async () => {
  const nobody = { customer: {} };
  const named = (error: unknown) => {
    assert.ok(error instanceof ConnectError && error.code === Code.InvalidArgument);
    assert.match(error.message, /customer: must tell who the customer is/);
    return true;
  };
  await assert.rejects(wallet().findWalletItems(nobody, as(key)), named);
  await assert.rejects(wallet().getConfirmationStatus(nobody, as(key)), named);
  await assert.rejects(
    wallet().deleteWalletItem({ ...nobody, optionId: uuid, type: "card" }, as(key)),
    named,
  );
  await assert.rejects(
    subscriptions().deactivateSubscription({ ...nobody, subscriptionId: uuid }, as(key)),
    named,
  );
  const { errors } = await graphql("{ walletItems(customer: {}) { optionId } }", as(key).headers);
  assert.equal(errors?.[0]?.extensions.code, "BAD_USER_INPUT");
  assert.equal(received.length, 0);
  // Control: a caller whose token names the customer may leave it out in the same way.
  await wallet().findWalletItems(nobody, as(customer));
  assert.equal(received.length, 1);
});

test("an X-CUSTOMER-RID header of a caller is never forwarded", async () => {
  const headers = { "x-customer-rid": uuid };
  await wallet().findWalletItems({ customer: externalId("somebody") }, as(key, headers));
  await wallet().findWalletItems({}, as(customer, headers));
  await subscriptions().deactivateSubscription({ subscriptionId: uuid }, as(key, headers));
  await graphql('{ walletItems(customer: { externalId: "somebody" }) { optionId } }', {
    ...as(key, headers).headers,
  });
  assert.equal(received.length, 4);
  for (const { headers } of received) assert.equal(headers["x-customer-rid"], undefined);
  // Control: as a field in a trusted service's request, it does reach the payments service.
  await subscriptions().deactivateSubscription(
    { customer: rid(uuid), subscriptionId: uuid },
    as(key),
  );
  assert.equal(received.at(-1)?.headers["x-customer-rid"], uuid);
});

test("a customer token with characters that no header allows is refused and not sent", async () => {
  // A WebSocket client sends it in JSON, which allows all characters.
  const client = createWsClient({
    url: `${gateway.publicUrl.replace("http", "ws")}/graphql`,
    webSocketImpl: WebSocket,
    retryAttempts: 0,
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

test("only the scope wallet:pan gets the full card number, and a customer never does", async () => {
  const numberOf = async (token: string) => {
    const { items } = await wallet().findWalletItems(
      token === customer ? {} : { customer: externalId("somebody") },
      as(token),
    );
    return items[0]?.card?.fullNumber;
  };
  assert.equal(await numberOf(customer), undefined);
  assert.equal(await numberOf(key), undefined);
  assert.equal(await numberOf(panKey), number);
});

async function graphql(query: string, headers: Record<string, string>) {
  const response = await fetch(`${gateway.publicUrl}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ query }),
  });
  return (await response.json()) as {
    data?: Record<string, unknown>;
    errors?: { extensions: { code: string } }[];
  };
}
