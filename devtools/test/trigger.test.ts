import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { Gateway } from "../../src/app/gateway.ts";
import { parseCallback } from "../../src/callbacks/parse-callback.ts";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentStatus } from "../../src/gen/payments/v1/payment_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { run } from "../../test/cli/resident.ts";
import { inPairs, placesOf } from "../../test/cli/run.ts";
import { startBefore, startTestGateway } from "../../test/start.ts";
import { triggeredEvents } from "../trigger-events.ts";

let gateway: Gateway;
let env: Record<string, string>;
before(async () => {
  gateway = await startTestGateway();
  env = placesOf(gateway);
});
after(() => gateway.stop());

const callbacks = () => ["--callback-url", `${gateway.publicUrl}/callbacks/default/{kind}`];
const client = (url: string) =>
  createClient(PaymentService, createConnectTransport({ baseUrl: url, httpVersion: "1.1" }));

/** Not run through the sandbox: they differ from other events in a card or a status alone. */
const alike = ["payment.delayed", "payment.delayed-failure", "payment.duplicate", "payout.failure"];

test("listed events can be triggered, through the sandbox or by callbacks", () =>
  inPairs(
    [
      ...triggeredEvents
        .filter(({ name, sandbox }) => sandbox && !alike.includes(name))
        .map(({ name }) => [name, "sandbox"]),
      ["payment.duplicate", "callback"],
      ["payout.failure", "callback"],
      ["callback.unreadable", "callback"],
      ["callback.forged", "callback"],
    ],
    async ([name = "", via = ""]) => {
      const args = ["trigger", name, "--via", via, ...callbacks(), "--json"];
      const { code, out, err } = await run(args, { env });
      assert.equal(code, 0, `${name} ${via}: ${err}`);
      const told = JSON.parse(out) as { event: string; via: string; answer: string };
      assert.equal(told.event, name);
      assert.equal(told.via, via);
    },
  ));

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
  const paid = await run(["trigger", "payment.success", "--external-id", "paid-1", "--json"], {
    env,
  });
  const { payment_id } = JSON.parse(paid.out);
  const refund = (order: string) =>
    run(["trigger", "refund", "--external-id", order, "--json"], { env });
  const first = await refund("paid-1");
  assert.equal(JSON.parse(first.out).payment_id, payment_id, first.err);
  const other = await refund("new-1");
  assert.equal(other.code, 0, other.err);
});

test("the amount of a triggered payment arrives, and the payment can be refunded once", async () => {
  const made = await run(
    ["trigger", "payment.success", "--external-id", "exact", "--amount", "0.10", "--json"],
    { env },
  );
  const { payment_id } = JSON.parse(made.out) as { payment_id: string };
  const payments = client(gateway.rpcUrl);
  const { payment } = await payments.getPayment({ externalId: "exact" });
  assert.equal(payment?.details?.status, PaymentStatus.SUCCESS);
  assert.equal(Number(payment?.details?.amount), 0.1);

  const refund = await run(["trigger", "refund", "--payment-id", payment_id, "--json"], { env });
  assert.equal(refund.code, 0, refund.err);
  const again = await run(["trigger", "refund", "--payment-id", payment_id], { env });
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

test("refuses addresses that are not on this machine, unless --force is given", async () => {
  for (const args of [
    ["--via", "sandbox", "--url", "http://payments.example:4001"],
    ["--via", "callback", "--callback-url", "https://payments.example/callbacks/default/{kind}"],
  ]) {
    const { code, err } = await run(["trigger", "payment.success", ...args]);
    assert.equal(code, 64);
    assert.match(err, /payments\.example.* is not on this machine: give --force/);
  }
});

test("sends no payment to an upstream other than the sandbox, unless --force is given", async () => {
  const posts: string[] = [];
  const upstream = createServer((request, response) => {
    if (request.method === "POST") posts.push(request.url ?? "");
    request.resume();
    response.writeHead(request.method === "POST" ? 200 : 404, {
      "content-type": "application/json",
    });
    response.end(
      request.method === "POST"
        ? '{"external_id":"real","details":{"payment_id":"p","status":"success"}}'
        : '{"code":"customer_profile_not_found","message":"no","type":"customer_error"}',
    );
  });
  const real = await startBefore(upstream, { AUTH_MODE: "none" });
  try {
    const args = ["trigger", "payment.success", "--external-id", "real"];
    const refused = await run(args, { env: placesOf(real) });
    assert.equal(refused.code, 1);
    assert.match(refused.err, /is not the sandbox: nothing was sent/);
    assert.deepEqual(posts, []);
    assert.equal((await run([...args, "--force"], { env: placesOf(real) })).code, 0);
    assert.deepEqual(posts, ["/api/payments/v1/new"]);
  } finally {
    await real.stop();
  }
});
