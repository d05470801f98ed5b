import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import type { Gateway } from "../../src/app/gateway.ts";
import { OutcomeUnknownSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { CallOutcome, EventSource } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentStatus } from "../../src/gen/payments/v1/payment_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { PayoutService } from "../../src/gen/payments/v1/payout_service_pb.ts";
import { startTestGateway } from "../start.ts";
import { inTime, timeoutMs } from "../until.ts";
import { graphql, paymentOf } from "./callers.ts";

let gateway: Gateway;
before(async () => {
  gateway = await startTestGateway({ RECONCILE_AFTER: "200ms", UPSTREAM_TIMEOUT: "1s" });
});
after(() => gateway.stop());

/** Cards that the sandbox charges, and then loses the answer, or the answer and the callback. */
const answerLost = "4000000000000762";
const bothLost = "4000000000000713";

test("a lost answer is reported as unknown, never as failed, and the callback settles it", async () => {
  const externalId = "answer-lost";
  const seen = watch(externalId);
  await assertUnknown(create(externalId, answerLost), externalId);
  assert.deepEqual(await seen, ["UNKNOWN", "SUCCESS CALLBACK"]);
  const settled = await untilKnown(externalId);
  assert.equal(settled.payment?.details?.status, PaymentStatus.SUCCESS);
});

test("a lost answer and callback are settled by asking the service to resend the callback", async () => {
  const externalId = "both-lost";
  await assertUnknown(create(externalId, bothLost), externalId);
  const seen: unknown[] = [];
  const rest = rpc().watchPayment({ externalId, untilFinal: true }, inTime());
  for await (const { event } of rest) seen.push(event?.final);
  assert.equal(seen.at(-1), true);
  const settled = await untilKnown(externalId);
  assert.equal(settled.payment?.details?.status, PaymentStatus.SUCCESS);
  // Wait until the look-up settles the outcome: otherwise the call below would, uncounted here.
  const deadlineMs = Date.now() + timeoutMs;
  while (!isSettledBy("resend", await metrics())) {
    assert.ok(Date.now() < deadlineMs, "it is settled");
    await delay(10);
  }
  await assert.rejects(create(externalId, "4111111111111111"), { code: Code.AlreadyExists });
});

test("an outcome that is not settled is reported as unknown, and nothing is sent again", async (t) => {
  const own = await startTestGateway({ RECONCILE_AFTER: "60s" });
  t.after(() => own.stop());
  const externalId = "unsettled";
  const { createPayment, getPayment } = createClient(PaymentService, transport(own));
  await assertUnknown(createPayment(paymentOf(externalId, bothLost)), externalId);
  const { payment, outcomeUnknown } = await getPayment({ externalId });
  assert.deepEqual([payment, outcomeUnknown], [undefined, true]);
  const { data } = await graphql(
    own,
    `{ payment(externalId: "${externalId}") { externalId outcomeUnknown details { status } } }`,
  );
  assert.deepEqual(data.payment, { externalId, outcomeUnknown: true, details: null });
  const again = createPayment(paymentOf(externalId, "4111111111111111"));
  await assert.rejects(again, { code: Code.Aborted });

  const payout = "payout-unsettled";
  await assertUnknown(requestPayout(payout, "10.72", own), payout);
  const payouts = createClient(PayoutService, transport(own));
  const known = await payouts.getPayout({ externalId: payout });
  assert.deepEqual([known.payout, known.outcomeUnknown], [undefined, true]);
  assert.deepEqual((await graphql(own, payoutQuery(payout))).data.payout, {
    ...{ externalId: payout, outcomeUnknown: true, status: null },
  });
});

test("a pending payment whose callback never arrives is settled by operation info", async () => {
  const externalId = "callback-lost";
  const sources: (EventSource | undefined)[] = [];
  const watched = (async () => {
    for await (const { event } of rpc().watchPayment({ externalId, untilFinal: true }, inTime())) {
      sources.push(event?.source);
    }
  })();
  const { payment } = await create(externalId, "4000000000000697");
  assert.equal(payment?.details?.status, PaymentStatus.PENDING);
  await watched;
  assert.deepEqual(sources, [EventSource.RESPONSE, EventSource.RECONCILIATION]);
  const { payment: after } = await rpc().getPayment({ externalId });
  assert.equal(after?.details?.status, PaymentStatus.SUCCESS);
  assert.equal(after?.isSuccess, true);
});

test("a payout whose answer and callback are lost is settled by payout info", async () => {
  const externalId = "payout-lost";
  const payouts = createClient(PayoutService, transport());
  const seen = (async () => {
    const events: string[] = [];
    for await (const { event } of payouts.watchPayout({ externalId, untilFinal: true }, inTime())) {
      if (event?.callOutcome === CallOutcome.UNKNOWN) events.push("UNKNOWN");
      if (event?.final) events.push(`final ${event.source === EventSource.RECONCILIATION}`);
    }
    return events;
  })();
  await assertUnknown(requestPayout(externalId, "10.71"), externalId);
  assert.deepEqual(await seen, ["UNKNOWN", "final true"]);
});

test("a call that charged nothing becomes NOT_DONE, and may be made again", async () => {
  const externalId = "never-arrived";
  const outcomes: CallOutcome[] = [];
  const watched = (async () => {
    for await (const { event } of rpc().watchPayment({ externalId }, inTime())) {
      outcomes.push(event?.callOutcome ?? CallOutcome.UNSPECIFIED);
      if (event?.callOutcome === CallOutcome.NOT_DONE) return;
    }
  })();
  // HTTP 500 with an HTML page: nothing was charged, but the answer does not show that.
  await assertUnknown(create(externalId, "4000000000000721"), externalId);
  await watched;
  assert.deepEqual(outcomes, [CallOutcome.UNKNOWN, CallOutcome.NOT_DONE]);
  // The lock is released right after the event.
  for (;;) {
    const again = await rpc()
      .getPayment({ externalId })
      .catch((error: ConnectError) => error.code);
    if (again === Code.NotFound) break;
  }
  const { payment } = await create(externalId, "4111111111111111");
  assert.equal(payment?.details?.status, PaymentStatus.SUCCESS);
});

test("a call that is not settled within RECONCILE_GIVE_UP is flagged needs_operator", async (t) => {
  const own = await startTestGateway({ RECONCILE_GIVE_UP: "24h" });
  t.after(() => own.stop());
  const { createPayment, getPayment } = createClient(PaymentService, transport(own));
  const externalId = "silence";
  await assertUnknown(createPayment(paymentOf(externalId, "4000000000000838")), externalId);
  assert.equal((await getPayment({ externalId })).needsOperator, false);

  const response = await fetch(`${own.sandboxUrl}/__sandbox/clock`, {
    method: "POST",
    headers: { authorization: `Basic ${btoa("sandbox:sandbox-password")}` },
    body: JSON.stringify({ advance_ms: 24 * 3_600_000 + 1_000 }),
  });
  assert.equal(response.status, 200);
  const deadlineMs = Date.now() + timeoutMs;
  while (!(await getPayment({ externalId })).needsOperator) {
    assert.ok(Date.now() < deadlineMs, "it is flagged");
    await delay(10);
  }
});

test("the metrics count settled calls by what settled them", async () => {
  const text = await metrics();
  for (const by of ["event", "resend", "operation", "payout", "notFound"]) {
    assert.ok(isSettledBy(by, text), by);
  }
});

async function metrics(): Promise<string> {
  return (await fetch(`${gateway.adminUrl}/metrics`)).text();
}

function isSettledBy(by: string, text: string): boolean {
  return text.includes(`reconciliations_settled_total{account="default",by="${by}"} `);
}

async function assertUnknown(call: Promise<unknown>, externalId: string): Promise<void> {
  await assert.rejects(call, (error) => {
    assert.ok(error instanceof ConnectError);
    assert.equal(error.code, Code.Unknown);
    assert.deepEqual(
      error.findDetails(OutcomeUnknownSchema).map((detail) => detail.externalId),
      [externalId],
    );
    return true;
  });
}

/** Polls until the outcome is known. */
async function untilKnown(externalId: string) {
  for (;;) {
    const known = await rpc().getPayment({ externalId });
    assert.notEqual(known.payment?.details?.status, PaymentStatus.FAILURE);
    if (!known.outcomeUnknown) return known;
  }
}

async function watch(externalId: string): Promise<string[]> {
  const seen: string[] = [];
  for await (const { event } of rpc().watchPayment({ externalId, untilFinal: true }, inTime())) {
    if (event?.callOutcome === CallOutcome.UNKNOWN) seen.push("UNKNOWN");
    if (event?.resource.case !== "payment") continue;
    seen.push(
      `${event.final ? "SUCCESS" : "PENDING"} ${event.source === EventSource.CALLBACK ? "CALLBACK" : "OTHER"}`,
    );
  }
  return seen;
}

function create(externalId: string, number: string) {
  return rpc().createPayment(paymentOf(externalId, number));
}

function payoutQuery(externalId: string) {
  return `{ payout(externalId: "${externalId}") { externalId outcomeUnknown status } }`;
}

function requestPayout(externalId: string, originalAmount: string, of = gateway) {
  return createClient(PayoutService, transport(of)).requestPayout({
    order: { currency: "UAH", description: "salary", externalId, originalAmount },
    payer: { entityId: "e" },
    payoutType: "cash",
    recipient: { cash: { firstName: "Jo", lastName: "Doe" } },
  });
}

function rpc() {
  return createClient(PaymentService, transport());
}

function transport({ rpcUrl } = gateway) {
  return createGrpcTransport({ baseUrl: rpcUrl });
}
