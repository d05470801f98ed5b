import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { parseCallback } from "../../src/callbacks/parse-callback.ts";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentStatus } from "../../src/gen/payments/v1/payment_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { run } from "../../test/cli/resident.ts";
import { placesOf } from "../../test/cli/run.ts";
import { clientOf } from "../../test/gateway/callers.ts";
import { closing, ofSuite } from "../../test/of-suite.ts";
import { startBefore, startTestGateway } from "../../test/start.ts";
import { triggeredEvents } from "../trigger-events.ts";

const gateway = ofSuite(startTestGateway);
const trigger = (...args: string[]) => run(["trigger", ...args], { env: placesOf(gateway) });

const callbacks = () => ["--callback-url", `${gateway.publicUrl}/callbacks/default/{kind}`];
/** Not run through the sandbox: they differ from other events in a card or a status alone. */
const alike = ["payment.delayed", "payment.delayed-failure", "payment.duplicate", "payout.failure"];

for (const [name, via] of [
  ...triggeredEvents
    .filter(({ name, sandbox }) => sandbox && !alike.includes(name))
    .map(({ name }) => [name, "sandbox"] as const),
  ["payment.duplicate", "callback"],
  ["payout.failure", "callback"],
  ["callback.unreadable", "callback"],
  ["callback.forged", "callback"],
] as const) {
  test(`${name} can be triggered by way of a ${via}`, async () => {
    const { code, out, err } = await trigger(name, "--via", via, ...callbacks(), "--json");
    assert.equal(code, 0, err);
    const told = JSON.parse(out) as { event: string; via: string };
    assert.deepEqual([told.event, told.via], [name, via]);
  });
}

test("the callbacks of an event are read without a fault and have the status in its name", () => {
  const values = {
    ...{ externalId: "order-1", subjectId: "pay-1", operationId: "op-1" },
    ...{ amount: "10.10", currency: "UAH", at: new Date() },
  };
  for (const { name, callback } of triggeredEvents) {
    if (!callback || name.startsWith("callback.")) continue;
    const kind = callback.kind === "payments" ? EventKind.PAYMENT : EventKind.PAYOUT;
    const faults: string[] = [];
    const unrecognized: string[] = [];
    const entries = callback.bodies(values).map((body) => {
      const { entry } = parseCallback(kind, Buffer.from(JSON.stringify(body)), {
        onFault: (fault) =>
          void (fault.kind === "unrecognized" ? unrecognized : faults).push(fault.path),
      });
      return entry;
    });
    assert.deepEqual(faults, [], name);
    const [operation, status] = name.split(".");
    assert.equal(unrecognized.length > 0, status === "unrecognized", name);
    const operations = [operation, `other:${operation}`];
    assert.ok(
      entries.every(
        (entry) => entry?.externalId === "order-1" && operations.includes(entry.operation),
      ),
      name,
    );
    if (status === "success" || status === "failure" || status === "pending") {
      assert.equal(entries.at(-1)?.status, status, name);
    }
  }
});

test("refund gives back the payment of an order that is paid, and makes one for a new order", async () => {
  const paid = await trigger("payment.success", "--external-id", "paid-1", "--json");
  const { payment_id } = JSON.parse(paid.out);
  const first = await trigger("refund", "--external-id", "paid-1", "--json");
  assert.equal(JSON.parse(first.out).payment_id, payment_id, first.err);
  const other = await trigger("refund", "--external-id", "new-1", "--json");
  assert.equal(other.code, 0, other.err);
});

test("the amount of a triggered payment arrives, and the payment can be refunded once", async () => {
  const options = ["--external-id", "exact", "--amount", "0.10", "--json"];
  const { payment_id } = JSON.parse((await trigger("payment.success", ...options)).out);
  const payments = clientOf(PaymentService, gateway);
  const { payment } = await payments.getPayment({ externalId: "exact" });
  assert.equal(payment?.details?.status, PaymentStatus.SUCCESS);
  assert.equal(Number(payment?.details?.amount), 0.1);

  const refund = await trigger("refund", "--payment-id", payment_id, "--json");
  assert.equal(refund.code, 0, refund.err);
  const again = await trigger("refund", "--payment-id", payment_id);
  assert.equal(again.code, 1);
  assert.match(again.err, /the sandbox refuses the refund: \w+/);
});

test("a refused or undeliverable callback is reported", async () => {
  const args = ["trigger", "payment.success", "--via", "callback"];
  const wrong = await run([...args, ...callbacks()], { env: { UPSTREAM_PASSWORD: "other" } });
  assert.equal(wrong.code, 1);
  assert.match(wrong.err, /answered 401, not 200: the password is not that of the account/);
  const shop = `${gateway.publicUrl}/callbacks/shop/{kind}`;
  assert.match((await run([...args, "--callback-url", shop])).err, /answered 404.*no account/);
  const nobody = await run([...args, "--callback-url", "http://127.0.0.1:9"]);
  assert.equal(nobody.code, 69);
  const noGateway = await run(["trigger", "payment.success", "--url", "http://127.0.0.1:9"]);
  assert.equal(noGateway.code, 69);
});

test("what the gateway refuses is told in its words", async () => {
  const { code, err } = await trigger("payment.success", "--account", "nowhere");
  assert.equal(code, 1);
  assert.match(err, /refuses \(PERMISSION_DENIED\): the merchant account .* is unknown/);
});

test("refuses addresses that are not on this machine, unless --force is given", async () => {
  for (const args of [
    ["--via", "sandbox", "--url", "http://payments.example:4001"],
    // The merchant's password would go there.
    ["--via", "sandbox", "--sandbox-url", "http://payments.example:4010"],
    ["--via", "callback", "--callback-url", "https://payments.example/callbacks/default/{kind}"],
  ]) {
    const { code, err } = await run(["trigger", "payment.success", ...args]);
    assert.equal(code, 64);
    assert.match(err, /payments\.example.* is not on this machine: give --force/);
  }
});

test("sends no payment to an upstream other than the sandbox, unless --force is given", async (t) => {
  const posts: string[] = [];
  const paid = '{"external_id":"real","details":{"payment_id":"p","status":"success"}}';
  const unknown = '{"code":"customer_profile_not_found","message":"no","type":"customer_error"}';
  const upstream = createServer((request, response) => {
    const isPost = request.method === "POST";
    if (isPost) posts.push(request.url ?? "");
    request.resume();
    response.writeHead(isPost ? 200 : 404, { "content-type": "application/json" });
    response.end(isPost ? paid : unknown);
  });
  const real = closing(t, await startBefore(upstream, { AUTH_MODE: "none" }));
  const args = ["trigger", "payment.success", "--external-id", "real"];
  const refused = await run(args, { env: placesOf(real) });
  assert.equal(refused.code, 1);
  assert.match(refused.err, /is not the sandbox: nothing was sent/);
  assert.deepEqual(posts, []);
  assert.equal((await run([...args, "--force"], { env: placesOf(real) })).code, 0);
  assert.deepEqual(posts, ["/api/payments/v1/new"]);
});
