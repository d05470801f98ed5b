import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { type Sandbox, startSandbox } from "../../sandbox/server.ts";
import type { Gateway } from "../../src/app/gateway.ts";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { EventService } from "../../src/gen/payments/v1/event_service_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { keysText, newKey, scratch } from "../auth/issuer.ts";
import { startTestGateway } from "../start.ts";
import { timeoutMs } from "../until.ts";
import { paymentRequest } from "./operations.ts";

const files = scratch();
const [shopKey, marketKey, bothKey] = [newKey(), newKey(), newKey()];
const scopes = ["payments:read", "payments:write", "events:read", "watch:create"];
const accounts = ["shop", "market"] as const;

let gateway: Gateway;
const emulators: Sandbox[] = [];
before(async () => {
  const merchants: Record<string, object> = {};
  for (const name of accounts) {
    const emulator = await startSandbox({
      host: "127.0.0.1",
      port: 0,
      login: name,
      password: new Secret(`password-of-${name}`),
      delays: { callbackMs: 0 },
    });
    emulators.push(emulator);
    merchants[name] = { login: name, password: `password-of-${name}`, url: emulator.url };
  }
  gateway = await startTestGateway({
    MERCHANTS_FILE: files.write("merchants", JSON.stringify(merchants)),
    AUTH_MODE: "keys",
    API_KEYS_FILE: files.write(
      "keys",
      keysText([
        { name: "shop", key: shopKey, scopes, merchants: ["shop"] },
        { name: "market", key: marketKey, scopes, merchants: ["market"] },
        { name: "both", key: bothKey, scopes },
      ]),
    ),
    WATCH_TOKEN_SECRET: "w".repeat(32),
    GRAPHQL_SUBGRAPH: "true",
    RATE_LIMIT_INITIAL: "50",
  });
});
after(async () => {
  await gateway.stop();
  await Promise.all(emulators.map((emulator) => emulator.close()));
});

const as = (key: string, more: Record<string, string> = {}) => ({
  headers: { authorization: `Bearer ${key}`, ...more },
  signal: AbortSignal.timeout(timeoutMs),
});
const transport = () => createConnectTransport({ baseUrl: gateway.rpcUrl, httpVersion: "2" });
const payments = () => createClient(PaymentService, transport());
const events = () => createClient(EventService, transport());
const request = (externalId: string) => paymentRequest(externalId) as never;

async function codeOf(call: Promise<unknown>): Promise<Code> {
  try {
    await call;
  } catch (error) {
    return ConnectError.from(error).code;
  }
  return assert.fail("the call succeeded");
}

async function first<T>(stream: AsyncIterable<T>): Promise<T | undefined> {
  for await (const item of stream) return item;
  return undefined;
}

test("a key limited to one account uses it by default and no other", async () => {
  const { payment } = await payments().createPayment(request("limited"), as(shopKey));
  assert.ok(payment);
  assert.equal(emulators[0]?.ledger().payments.length, 1);
  assert.equal(emulators[1]?.ledger().payments.length, 0);
  const answers = await Promise.all(
    ["market", "nowhere", "default"].map((account) =>
      payments()
        .getPayment({ externalId: "limited" }, as(shopKey, { "x-merchant-account": account }))
        .then(
          () => assert.fail(account),
          (error) => `${ConnectError.from(error).code} ${ConnectError.from(error).message}`,
        ),
    ),
  );
  assert.equal(new Set(answers).size, 1);
  assert.match(answers[0] ?? "", new RegExp(`^${Code.PermissionDenied} `));
  const unsaid = payments().getPayment({ externalId: "limited" }, as(bothKey));
  assert.equal(await codeOf(unsaid), Code.PermissionDenied);
  await payments().getPayment(
    { externalId: "limited" },
    as(bothKey, { "x-merchant-account": "shop" }),
  );
});

test("the same external id is a different payment in another account", async () => {
  await payments().createPayment(request("same"), as(shopKey));
  assert.equal(
    await codeOf(payments().getPayment({ externalId: "same" }, as(marketKey))),
    Code.NotFound,
  );
  await payments().createPayment(request("same"), as(marketKey));
  const [a, b] = await Promise.all(
    [shopKey, marketKey].map((key) => payments().getPayment({ externalId: "same" }, as(key))),
  );
  assert.notEqual(a?.payment?.details?.paymentId, b?.payment?.details?.paymentId);
});

test("a watch token is valid only for its account", async () => {
  await payments().createPayment(request("watched"), as(shopKey));
  const { token } = await events().createWatchToken(
    { externalId: "watched", kind: EventKind.PAYMENT },
    as(shopKey),
  );
  const watch = (more: Record<string, string>) =>
    first(payments().watchPayment({ externalId: "watched" }, as(token, more)));
  assert.equal((await watch({}))?.event?.externalId, "watched");
  assert.equal(await codeOf(watch({ "x-merchant-account": "market" })), Code.PermissionDenied);
});

test("each account has a budget of its own", async () => {
  const remaining = async (key: string) => {
    let told = "";
    await payments().getPayment(
      { externalId: "same" },
      { ...as(key), onHeader: (headers) => (told = headers.get("x-ratelimit-remaining") ?? "") },
    );
    return Number(told);
  };
  const before = await remaining(marketKey);
  for (let n = 0; n < 5; n++) await payments().createPayment(request(`spent-${n}`), as(shopKey));
  assert.ok((await remaining(marketKey)) >= before);
});
