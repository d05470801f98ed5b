import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Code } from "@connectrpc/connect";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { EventService } from "../../src/gen/payments/v1/event_service_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { accessEnv, keysText, newKey, scratch, signingKey, signToken } from "../auth/issuer.ts";
import { closing } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { until } from "../until.ts";
import { clientOf, paymentRequest, paymentTold, sendCallback } from "./callers.ts";
import { edges, watch } from "./watches.ts";

const files = scratch();
const signing = await signingKey("es");
const key = newKey();
const staying = { name: "staying", key: newKey(), scopes: ["payments:read"] };
const scopes = ["payments:read", "payments:write", "events:read", "watch:create"];

async function start(t: TestContext, env: Record<string, string> = {}) {
  const access = accessEnv(files, [staying, { name: "shop", key, scopes }], signing);
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

test("streams end when their JWT or watch token expires", async (t) => {
  const gateway = await start(t);
  // Long enough to open all streams, on a busy machine too.
  const ttlSeconds = 5;
  const exp = Math.floor(Date.now() / 1_000) + ttlSeconds;
  const { token: watchToken } = await clientOf(EventService, gateway).createWatchToken(
    { externalId: "order", kind: EventKind.PAYMENT, ttlSeconds },
    as(key),
  );
  const jwt = await signToken(signing, { scope: "payments:read", exp });
  const expire = edges.flatMap((edge) =>
    [jwt, watchToken].map(async (token) => {
      const { code, resumeCursor } = await watch(edge, gateway, "order", { token }).ended();
      assert.ok(Date.now() >= exp * 1_000, edge);
      assert.equal(code, "UNAUTHENTICATED", edge);
      assert.ok(resumeCursor, edge);
    }),
  );
  await Promise.all(expire);
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
