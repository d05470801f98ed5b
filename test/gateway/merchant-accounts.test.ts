import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Code } from "@connectrpc/connect";
import { type Sandbox, startSandbox } from "../../sandbox/server.ts";
import type { Gateway } from "../../src/app/gateway.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { accessEnv, newKey, scratch } from "../auth/issuer.ts";
import { startTestGateway } from "../start.ts";
import { timeoutMs } from "../until.ts";
import { clientOf, paymentRequest } from "./callers.ts";

const files = scratch();
const [shopKey, marketKey, bothKey] = [newKey(), newKey(), newKey()];
const scopes = ["payments:read", "payments:write"];

let gateway: Gateway;
let emulators: Sandbox[];
before(async () => {
  const merchants: Record<string, object> = {};
  emulators = await Promise.all(
    ["shop", "market"].map(async (login) => {
      const password = `password-of-${login}`;
      const emulator = await startSandbox({
        ...{ host: "127.0.0.1", port: 0, login, password: new Secret(password) },
        delays: { callbackMs: 0 },
      });
      merchants[login] = { login, password, url: emulator.url };
      return emulator;
    }),
  );
  gateway = await startTestGateway({
    MERCHANTS_FILE: files.write("merchants", JSON.stringify(merchants)),
    ...accessEnv(files, [
      { name: "shop", key: shopKey, scopes, merchants: ["shop"] },
      { name: "market", key: marketKey, scopes, merchants: ["market"] },
      { name: "both", key: bothKey, scopes },
    ]),
    RATE_LIMIT_INITIAL: "50",
  });
});
after(async () => {
  await gateway.stop();
  await Promise.all(emulators.map((emulator) => emulator.close()));
});

const as = (key: string, account?: string) => ({
  headers: { authorization: `Bearer ${key}`, ...(account && { "x-merchant-account": account }) },
  signal: AbortSignal.timeout(timeoutMs),
});
const pay = (externalId: string, key: string) =>
  clientOf(PaymentService, gateway).createPayment(paymentRequest(externalId), as(key));
const look = (externalId: string, ...caller: Parameters<typeof as>) =>
  clientOf(PaymentService, gateway).getPayment({ externalId }, as(...caller));

test("the same external id is a different payment in another account", async () => {
  await pay("same", shopKey);
  await assert.rejects(look("same", marketKey), { code: Code.NotFound });
  await pay("same", marketKey);
  const [a, b] = await Promise.all([look("same", shopKey), look("same", marketKey)]);
  assert.notEqual(a.payment?.details?.paymentId, b.payment?.details?.paymentId);
});

test("each account has a budget of its own", async () => {
  const remaining = async (key: string) => {
    let told = "";
    const onHeader = (headers: Headers) => (told = headers.get("x-ratelimit-remaining") ?? "");
    const { getPayment } = clientOf(PaymentService, gateway);
    await getPayment({ externalId: "same" }, { ...as(key), onHeader });
    return Number(told);
  };
  const before = await remaining(marketKey);
  for (let n = 0; n < 5; n++) await pay(`spent-${n}`, shopKey);
  assert.ok((await remaining(marketKey)) >= before);
});

test("an account whose credentials the service refuses does not make others unready", async (t) => {
  const [shop, market] = emulators.map(({ url }) => url);
  const merchants = {
    shop: { login: "shop", password: "password-of-shop", url: shop },
    market: { login: "market", password: "wrong", url: market },
  };
  const others = await startTestGateway({
    MERCHANTS_FILE: files.write("others", JSON.stringify(merchants)),
    ...accessEnv(files, [{ name: "both", key: bothKey, scopes }]),
  });
  t.after(() => others.stop());
  const client = clientOf(PaymentService, others);
  const call = (account: string) =>
    client.createPayment(paymentRequest(`of-${account}`), as(bothKey, account));
  await assert.rejects(call("market"), { code: Code.Internal });
  const readiness = await fetch(`${others.adminUrl}/readyz`);
  assert.deepEqual(
    [readiness.status, await readiness.json()],
    [200, { status: "ready", details: { credentialsRefused: ["market"] } }],
  );
  await call("shop");
});
