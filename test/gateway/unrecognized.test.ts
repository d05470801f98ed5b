import assert from "node:assert/strict";
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { test } from "node:test";
import { eventLine } from "../../devtools/event-line.ts";
import type { History } from "../../src/admin/console-api.ts";
import { UpstreamErrorSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { EventSource } from "../../src/gen/payments/v1/event_pb.ts";
import { OperationService } from "../../src/gen/payments/v1/operation_service_pb.ts";
import {
  PaymentOperation,
  PaymentState,
  PaymentStatus,
} from "../../src/gen/payments/v1/payment_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { PayoutState } from "../../src/gen/payments/v1/payout_pb.ts";
import { PayoutService } from "../../src/gen/payments/v1/payout_service_pb.ts";
import type { UnrecognizedValue } from "../../src/gen/payments/v1/unrecognized_value_pb.ts";
import { logRecords } from "../log-records.ts";
import { ofSuite } from "../of-suite.ts";
import { failure } from "../rpc/start.ts";
import { startBefore } from "../start.ts";
import { scrapeOf } from "../telemetry/scrape.ts";
import { inTime } from "../until.ts";
import { clientOf, dataOf, hostedPayment, sendCallback } from "./callers.ts";

/**
 * Answers every payment with `is_success: true` and the `details` that its payload contains, unless
 * that is an Error object; operation info with a status, and payout info with another, that no
 * contract has.
 */
const upstream = createServer(async (request, response) => {
  response.setHeader("content-type", "application/json");
  if (request.method === "GET") {
    response.end(JSON.stringify({ transaction_id: "t-1", id: "o-1", status: "on_hold" }));
    return;
  }
  const { external_id, payload } = (await json(request)) as Record<string, string>;
  const details = JSON.parse(payload ?? "{}");
  const refused = typeof details.code === "string";
  response.statusCode = refused ? 400 : 200;
  const operation = external_id === "no operation" ? undefined : "sale";
  const body = { external_id, id: "id-1", is_success: true, operation, details };
  response.end(JSON.stringify(refused ? details : body));
});
const { log, records } = logRecords("warn");
const env = {
  AUTH_MODE: "none",
  WATCH_TOKEN_SECRET: "0123456789abcdef0123456789abcdef",
  RECONCILE_AFTER: "0",
};
const gateway = ofSuite(() => startBefore(upstream, env, "", log));

const rpc = () => clientOf(PaymentService, gateway);
const callback = (told: object) => sendCallback(gateway, told, { password: "password" });
const pay = (externalId: string, details: object) =>
  rpc().createPayment({ ...hostedPayment(externalId), payload: JSON.stringify(details) });

/** The values that a message has as unrecognized, by their fields. */
function wordsOf(message: { readonly unrecognized: readonly UnrecognizedValue[] } | undefined) {
  assert(message);
  return Object.fromEntries(message.unrecognized.map(({ field, value }) => [field, value]));
}

for (const [externalId, details, words] of [
  ["word", { payment_id: "p-1", status: "charged_back" }, { "details.status": "charged_back" }],
  ["number", { payment_id: "p-2", status: 5 }, { "details.status": "5" }],
  ["list", [], {}],
] as const) {
  test(`an answer is PENDING despite is_success if its status is not understood: ${externalId}`, async () => {
    const { state, payment } = await pay(externalId, details);
    assert.equal(state, PaymentState.PENDING);
    assert.equal(payment?.isSuccess, true, "it is told as it came");
    assert.deepEqual(wordsOf(payment), { operation: "sale", ...words });
    for await (const { event } of rpc().watchPayment({ externalId }, inTime())) {
      const { PENDING } = PaymentState;
      const seen = [event?.final, event?.source, event?.state];
      assert.deepEqual(seen, [false, EventSource.RESPONSE, PENDING]);
      break;
    }
  });
}

test("an answer without a status has the state that follows from is_success", async () => {
  assert.equal((await pay("none", { payment_id: "p-3" })).state, PaymentState.PAID);
});

test("an answer is of the operation that its call asked for if it names none", async () => {
  const externalId = "no operation";
  await pay(externalId, { payment_id: "p-4" });
  await rpc().confirmPayment({ externalId });
  await rpc().createRecurrentPayment({ externalId, recurrentId: "r-1", amount: "1.00" });
  const { operations } = await rpc().getPayment({ externalId });
  const { PAYMENT, CONFIRM, RECURRENT } = PaymentOperation;
  assert.deepEqual(
    operations.map(({ operation }) => operation),
    [PAYMENT, CONFIRM, RECURRENT],
  );
});

test("operation info, payout info and an Error object keep a word outside an enum", async () => {
  const about = { externalId: "word", operationId: "op-1" };
  const { operation } = await clientOf(OperationService, gateway).getOperation(about);
  assert.deepEqual(wordsOf(operation), { status: "on_hold" });
  const { payout, state } = await clientOf(PayoutService, gateway).getPayout({ externalId: "out" });
  assert.deepEqual([payout?.status, wordsOf(payout)], ["on_hold", { status: "on_hold" }]);
  assert.equal(state, PayoutState.PENDING);

  const said = { code: "insufficient_funds", type: "new_error" };
  const error = await failure(pay("refused", said));
  assert.deepEqual(wordsOf(error.findDetails(UpstreamErrorSchema)[0]), { type: "new_error" });
  const { createPayment } = await dataOf(
    gateway,
    `mutation { createPayment(input: {
      externalId: "refused-too", amount: "1", currency: "UAH", mode: HOSTED,
      paymentMethod: { type: CC_NUMBER }, payload: ${JSON.stringify(JSON.stringify(said))}
    }) { ... on PaymentServiceError { code type unrecognized { field value } } } }`,
  );
  assert.deepEqual(createPayment, {
    ...{ code: "insufficient_funds", type: null },
    unrecognized: [{ field: "type", value: "new_error" }],
  });
});

test("a chargeback is told by RPC, GraphQL and the console, and changes no state", async () => {
  const externalId = "charged-back";
  const paid = { payment_id: "p-1", status: "success", amount: "10.10", currency: "UAH" };
  await callback({ external_id: externalId, operation: "payment", details: paid });
  const back = { external_id: externalId, operation: "chargeback", details: paid };
  await callback(back);
  await callback({ ...back, receipt_url: "https://shop.example/again" });

  const { state, payment, operations } = await rpc().getPayment({ externalId });
  assert.equal(state, PaymentState.PAID);
  assert.deepEqual([payment?.operation, wordsOf(payment)], [PaymentOperation.PAYMENT, {}]);
  assert.deepEqual(
    operations.map((one) => [one.operation, one.status, wordsOf(one)]),
    [
      [PaymentOperation.PAYMENT, PaymentStatus.SUCCESS, {}],
      [PaymentOperation.UNSPECIFIED, PaymentStatus.SUCCESS, { operation: "chargeback" }],
    ],
  );

  const seen = [];
  for await (const { event } of rpc().watchPayment({ externalId, fromStart: true }, inTime())) {
    assert(event?.resource.case === "payment");
    seen.push([event.final, event.state, wordsOf(event.resource.value).operation]);
    if (seen.length === 2) break;
  }
  assert.deepEqual(seen, [
    [true, PaymentState.PAID, undefined],
    [false, PaymentState.PAID, "chargeback"],
  ]);

  const unrecognized = [{ field: "operation", value: "chargeback" }];
  const { payment: known } = await dataOf(
    gateway,
    `{ payment(externalId: "${externalId}") {
      state
      operations { operation unrecognized { field value } }
      events { final payment { operation unrecognized { field value } } }
    } }`,
  );
  const told = [
    { operation: "PAYMENT", unrecognized: [] },
    { operation: null, unrecognized },
  ];
  const events = told.map((payment, at) => ({ final: at === 0, payment }));
  assert.deepEqual(known, { state: "PAID", operations: told, events });

  const history = await fetch(
    `${gateway.adminUrl}/api/history?account=default&kind=payment&external_id=${externalId}`,
  );
  const shown = (await history.json()) as History;
  assert.deepEqual(
    shown.operations.map(({ operation }) => operation),
    ["payment", "chargeback"],
  );
  assert.deepEqual(
    shown.events.map((event) => [event.operation, event.status, event.unrecognized]),
    [
      ["chargeback", "success", unrecognized],
      ["payment", "success", undefined],
    ],
  );
});

test("what was pending stays PENDING, with the word of the status beside it", async () => {
  const externalId = "expired";
  const details = { payment_id: "p-1", status: "pending", amount: "10.10", currency: "UAH" };
  const told = { external_id: externalId, operation: "payment", details };
  await callback({ ...told, action: { type: "3ds", value: "https://bank.example/3ds" } });
  const pending = await rpc().getPayment({ externalId });
  await callback({ ...told, is_success: true, details: { ...details, status: "expired" } });
  const { state, payment, operations } = await rpc().getPayment({ externalId });
  assert.deepEqual(
    [state, payment?.details?.status],
    [PaymentState.PENDING, PaymentStatus.PENDING],
  );
  assert.equal(payment?.action?.value, "https://bank.example/3ds");
  for (const one of [payment, ...operations]) {
    assert.deepEqual(wordsOf(one), { "details.status": "expired" });
  }
  const request = { externalId, afterCursor: pending.cursor };
  for await (const { event } of rpc().watchPayment(request, inTime())) {
    assert(event?.resource.case === "payment");
    assert.deepEqual([event.final, event.state], [false, PaymentState.PENDING]);
    assert.equal(event.resource.value.details?.status, PaymentStatus.UNSPECIFIED);
    assert.match(eventLine(event), /expired .* unrecognized details\.status expired$/);
    break;
  }
});

test("a word is logged once, without the digits of a card", async () => {
  const logged = () => records.filter(({ value }) => value !== undefined);
  const before = logged().length;
  const word = "tell 4111111111111111";
  for (const [at, operation] of [word, word, word.toUpperCase()].entries()) {
    const details = { payment_id: `l-${at}`, status: "success" };
    await callback({ external_id: "logged", operation, details });
  }
  assert.deepEqual(
    logged()
      .slice(before)
      .map(({ field, value }) => [field, value]),
    [["operation", "tell 411111******1111"]],
  );
  const { text, sum } = await scrapeOf(gateway);
  assert.ok(sum("upstream_unrecognized_values_total", { field: "operation" }) > 0);
  assert.doesNotMatch(text, /tell/);
});
