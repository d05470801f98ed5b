import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Code } from "@connectrpc/connect";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { accessEnv, keysText, newKey, scratch } from "../auth/issuer.ts";
import { closing } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { until } from "../until.ts";
import { clientOf, paymentRequest, paymentTold, sendCallback } from "./callers.ts";
import { edges, watch } from "./watches.ts";

const files = scratch();
const key = newKey();
const staying = { name: "staying", key: newKey(), scopes: ["payments:read"] };
const scopes = ["payments:read", "payments:write"];

async function start(t: TestContext, env: Record<string, string> = {}) {
  const access = accessEnv(files, [staying, { name: "shop", key, scopes }]);
  const gateway = closing(t, await startTestGateway({ ...access, ...env }));
  await clientOf(PaymentService, gateway).createPayment(paymentRequest("order"), as(key));
  return gateway;
}

const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

test("a stream ends soon after its key is removed, with the cursor to resume from", async (t) => {
  const gateway = await start(t);
  const open = (token: string) => edges.map((edge) => watch(edge, gateway, "order", { token }));
  const [removed, unharmed] = [open(key), open(staying.key)];
  for (const watching of [...removed, ...unharmed]) await watching.next();
  files.write("keys", keysText([staying]));
  for (const [at, edge] of edges.entries()) {
    const end = await removed[at]?.ended();
    assert.equal(end?.code, "UNAUTHENTICATED", edge);
    assert.ok(end.resumeCursor, edge);
  }
  const payments = clientOf(PaymentService, gateway);
  const again = payments.getPayment({ externalId: "order" }, as(key));
  await assert.rejects(again, { code: Code.Unauthenticated });
  await sendCallback(gateway, paymentTold("order", "success", "refund"));
  for (const watching of unharmed) assert.ok(await watching.next(), "it is still open");
  await Promise.all(unharmed.map((watching) => watching.leave()));
});

test("MAX_STREAMS_PER_CALLER counts over all edges, and a closed stream frees its slot", async (t) => {
  const gateway = await start(t, { MAX_STREAMS_PER_CALLER: "3" });
  const open = async (edge: (typeof edges)[number], token = key) => {
    const watching = watch(edge, gateway, "order", { token });
    await watching.next();
    return watching;
  };
  const watches = await Promise.all(edges.map((edge) => open(edge)));
  for (const edge of edges) await assert.rejects(open(edge), { code: "RESOURCE_EXHAUSTED" });
  await (await open("gRPC", staying.key)).leave();
  for (const watching of watches) {
    await watching.leave();
    // The gateway notices a client's disconnect a little later.
    const next = await until(() => open("gRPC"));
    await next.leave();
  }
});
