import assert from "node:assert/strict";
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { after, before, describe, it, test } from "node:test";
import { ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { pino } from "pino";
import { eventLine } from "../../devtools/event-line.ts";
import type { History } from "../../src/admin/console-api.ts";
import type { Gateway } from "../../src/app/gateway.ts";
import { UpstreamErrorSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { EventSource } from "../../src/gen/payments/v1/event_pb.ts";
import { OperationService } from "../../src/gen/payments/v1/operation_service_pb.ts";
import { PaymentMode } from "../../src/gen/payments/v1/payment_input_pb.ts";
import {
  PaymentMethodType,
  PaymentOperation,
  PaymentState,
  PaymentStatus,
} from "../../src/gen/payments/v1/payment_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { PayoutState } from "../../src/gen/payments/v1/payout_pb.ts";
import { PayoutService } from "../../src/gen/payments/v1/payout_service_pb.ts";
import type { UnrecognizedValue } from "../../src/gen/payments/v1/unrecognized_value_pb.ts";
import { sign } from "../../src/wire/signature.ts";
import { startBefore } from "../start.ts";
import { inTime, timeoutMs } from "../until.ts";

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
let gateway: Gateway;
const log: Record<string, unknown>[] = [];
const logger = pino({ level: "warn" }, { write: (line) => void log.push(JSON.parse(line)) });
before(async () => {
  const env = {
    AUTH_MODE: "none",
    WATCH_TOKEN_SECRET: "0123456789abcdef0123456789abcdef",
    RECONCILE_AFTER: "0",
  };
  gateway = await startBefore(upstream, env, "", logger);
});
after(async () => {
  await gateway.stop();
});

describe("an answer whose status is not understood", () => {
  for (const [externalId, details, words] of [
    ["word", { payment_id: "p-1", status: "charged_back" }, { "details.status": "charged_back" }],
    ["number", { payment_id: "p-2", status: 5 }, { "details.status": "5" }],
    ["list", [], {}],
  ] as const) {
    it(`is PENDING despite is_success: ${JSON.stringify(details)}`, async () => {
      const { state, payment } = await pay(externalId, details);
      assert.equal(state, PaymentState.PENDING);
      assert.equal(payment?.isSuccess, true, "it is told as it came");
      assert.deepEqual(wordsOf(payment), { operation: "sale", ...words });

      const known = await rpc().getPayment({ externalId });
      assert.equal(known.state, PaymentState.PENDING);
      for await (const { event } of rpc().watchPayment({ externalId })) {
        assert.deepEqual([event?.final, event?.source], [false, EventSource.RESPONSE]);
        break;
      }
    });
  }

  it("differs from an answer without a status, whose state follows is_success", async () => {
    const { state } = await pay("none", { payment_id: "p-3" });
    assert.equal(state, PaymentState.PAID);
  });
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

describe("an answer with a word outside an enum", () => {
  it("keeps the words of operation info, payout info and an Error object", async () => {
    const operations = createClient(OperationService, transport());
    const about = { externalId: "word", operationId: "op-1" };
    const { operation } = await operations.getOperation(about);
    assert.deepEqual(wordsOf(operation), { status: "on_hold" });
    const payouts = createClient(PayoutService, transport());
    const { payout, state } = await payouts.getPayout({ externalId: "payout" });
    assert.deepEqual([payout?.status, wordsOf(payout)], ["on_hold", { status: "on_hold" }]);
    assert.equal(state, PayoutState.PENDING);

    const said = { code: "insufficient_funds", type: "new_error" };
    const error = await pay("refused", said).then(
      () => assert.fail("it was refused"),
      (thrown: unknown) => ConnectError.from(thrown),
    );
    const [detail] = error.findDetails(UpstreamErrorSchema);
    assert.deepEqual(wordsOf(detail), { type: "new_error" });
    const { createPayment } = await graphql(`mutation { createPayment(input: {
      externalId: "refused-too", amount: "1", currency: "UAH", mode: HOSTED,
      paymentMethod: { type: CC_NUMBER }, payload: ${JSON.stringify(JSON.stringify(said))}
    }) { ... on PaymentServiceError { code type unrecognized { field value } } } }`);
    assert.deepEqual(createPayment, {
      ...{ code: "insufficient_funds", type: null },
      unrecognized: [{ field: "type", value: "new_error" }],
    });
  });
});

describe("a callback with a word outside an enum", { timeout: 4 * timeoutMs }, () => {
  it("tells of a chargeback by RPC, GraphQL, /watch and the console, and changes no state", async () => {
    const externalId = "charged-back";
    const paid = { payment_id: "p-1", status: "success", amount: "10.10", currency: "UAH" };
    await callback({ external_id: externalId, operation: "payment", details: paid });
    const back = { external_id: externalId, operation: "chargeback", details: paid };
    await callback(back);
    await callback({ ...back, receipt_url: "https://shop.example/again" });
    await callback({ ...back, operation: "reversal" });

    const { state, payment, operations } = await rpc().getPayment({ externalId });
    assert.equal(state, PaymentState.PAID);
    assert.deepEqual([payment?.operation, wordsOf(payment)], [PaymentOperation.PAYMENT, {}]);
    assert.deepEqual(
      operations.map((one) => [one.operation, one.status, wordsOf(one)]),
      [
        [PaymentOperation.PAYMENT, PaymentStatus.SUCCESS, {}],
        [PaymentOperation.UNSPECIFIED, PaymentStatus.SUCCESS, { operation: "chargeback" }],
        [PaymentOperation.UNSPECIFIED, PaymentStatus.SUCCESS, { operation: "reversal" }],
      ],
    );

    const seen = [];
    for await (const { event } of rpc().watchPayment({ externalId, fromStart: true }, inTime())) {
      assert(event?.resource.case === "payment");
      seen.push([event.final, event.state, wordsOf(event.resource.value).operation]);
      if (seen.length === 3) break;
    }
    assert.deepEqual(seen, [
      [true, PaymentState.PAID, undefined],
      [false, PaymentState.PAID, "chargeback"],
      [false, PaymentState.PAID, "reversal"],
    ]);

    const words = (word: string) => [{ field: "operation", value: word }];
    const { payment: known } = await graphql(`{ payment(externalId: "${externalId}") { state
      operations { operation unrecognized { field value } }
      events { final payment { operation unrecognized { field value } } } } }`);
    assert.deepEqual(known, {
      state: "PAID",
      operations: [
        { operation: "PAYMENT", unrecognized: [] },
        { operation: null, unrecognized: words("chargeback") },
        { operation: null, unrecognized: words("reversal") },
      ],
      events: [
        { final: true, payment: { operation: "PAYMENT", unrecognized: [] } },
        { final: false, payment: { operation: null, unrecognized: words("chargeback") } },
        { final: false, payment: { operation: null, unrecognized: words("reversal") } },
      ],
    });

    const path = `/watch/payments/${externalId}?after=${(await first(externalId)).cursor}`;
    const stream = await fetch(gateway.publicUrl + path, inTime());
    let text = "";
    for await (const chunk of stream.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      if (text.includes("reversal")) break;
    }
    assert.match(text, /"unrecognized":\[\{"field":"operation","value":"chargeback"\}\]/);

    const history = await fetch(
      `${gateway.adminUrl}/api/history?account=default&kind=payment&external_id=${externalId}`,
    );
    const { events } = (await history.json()) as History;
    assert.deepEqual(
      events.map(({ operation, status, unrecognized }) => [operation, status, unrecognized]),
      [
        ["reversal", "success", words("reversal")],
        ["chargeback", "success", words("chargeback")],
        ["payment", "success", undefined],
      ],
    );
  });

  it("keeps what was pending PENDING, with the word of the status beside it", async () => {
    const externalId = "expired";
    const details = { payment_id: "p-1", status: "pending", amount: "10.10", currency: "UAH" };
    const told = { external_id: externalId, operation: "payment", details };
    await callback({ ...told, action: { type: "3ds", value: "https://bank.example/3ds" } });
    const pending = await rpc().getPayment({ externalId });
    await callback({ ...told, is_success: true, details: { ...details, status: "expired" } });
    const { state, payment, operations } = await rpc().getPayment({ externalId });
    assert.equal(state, PaymentState.PENDING);
    assert.equal(payment?.details?.status, PaymentStatus.PENDING);
    assert.equal(payment.action?.value, "https://bank.example/3ds");
    assert.deepEqual(wordsOf(payment), { "details.status": "expired" });
    assert.deepEqual(
      operations.map((one) => [one.operation, one.status, wordsOf(one)]),
      [[PaymentOperation.PAYMENT, PaymentStatus.PENDING, { "details.status": "expired" }]],
    );
    const { payment: known } = await graphql(`{ payment(externalId: "${externalId}") {
      state details { status } unrecognized { field value } } }`);
    const unrecognized = [{ field: "details.status", value: "expired" }];
    assert.deepEqual(known, { state: "PENDING", details: { status: "PENDING" }, unrecognized });

    const request = { externalId, afterCursor: pending.cursor };
    for await (const { event } of rpc().watchPayment(request, inTime())) {
      assert(event?.resource.case === "payment");
      assert.deepEqual([event.final, event.state], [false, PaymentState.PENDING]);
      assert.equal(event.resource.value.details?.status, PaymentStatus.UNSPECIFIED);
      assert.deepEqual(wordsOf(event.resource.value), { "details.status": "expired" });
      assert.match(eventLine(event), /expired .* unrecognized details\.status expired$/);
      break;
    }
    await callback({ ...told, details: { ...details, status: "failure" } });
    const failed = await rpc().getPayment({ externalId });
    assert.deepEqual([failed.state, wordsOf(failed.payment)], [PaymentState.FAILED, {}]);
    assert.deepEqual(failed.operations.map(wordsOf), [{}]);
  });

  it("is logged once per word, without the digits of a card", async () => {
    const logged = () => log.filter(({ value }) => value !== undefined);
    const before = logged().length;
    for (const [paymentId, operation] of [
      ["l-1", "tell 4111111111111111"],
      ["l-2", "tell 4111111111111111"],
      ["l-3", "TELL 4111111111111111"],
    ]) {
      const details = { payment_id: paymentId, status: "success" };
      await callback({ external_id: "logged", operation, details });
    }
    assert.deepEqual(
      logged()
        .slice(before)
        .map(({ field, value }) => [field, value]),
      [["operation", "tell 411111******1111"]],
    );
    const { text } = await metrics();
    assert.match(text, /unrecognized_values_total\{[^}]*field="operation"[^}]*\} \d/);
    assert.doesNotMatch(text, /tell/);
  });

  it("tells of a payout's status that it was not told of", async () => {
    const externalId = "payout-2";
    const body = { external_id: externalId, transaction_id: "t-2", status: "returned" };
    await callback(body, "payouts");
    const payouts = createClient(PayoutService, transport());
    for await (const { event } of payouts.watchPayout({ externalId }, inTime())) {
      assert(event?.resource.case === "payout");
      assert.deepEqual([event.final, event.state], [false, PaymentState.PENDING]);
      assert.deepEqual(wordsOf(event.resource.value), { status: "returned" });
      break;
    }
  });
});

function transport() {
  return createGrpcTransport({ baseUrl: gateway.rpcUrl });
}

function rpc() {
  return createClient(PaymentService, transport());
}

async function first(externalId: string) {
  for await (const { event } of rpc().watchPayment({ externalId, fromStart: true }, inTime())) {
    if (event) return event;
  }
  assert.fail("it has no event");
}

/** The values that a message has as unrecognized, by their fields. */
function wordsOf(message: { readonly unrecognized: readonly UnrecognizedValue[] } | undefined) {
  assert(message);
  return Object.fromEntries(message.unrecognized.map(({ field, value }) => [field, value]));
}

async function callback(told: object, resource = "payments"): Promise<void> {
  const body = JSON.stringify(told);
  const response = await fetch(`${gateway.publicUrl}/callbacks/default/${resource}`, {
    method: "POST",
    headers: { "x-service-signature": sign(Buffer.from(body), "password") },
    body,
  });
  assert.equal(response.status, 200);
}

async function graphql(query: string): Promise<Record<string, unknown>> {
  const response = await fetch(`${gateway.publicUrl}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ query }),
  });
  const { data, errors } = (await response.json()) as Record<string, never>;
  assert.equal(errors, undefined, JSON.stringify(errors));
  return data as unknown as Record<string, unknown>;
}

async function metrics() {
  return { text: await (await fetch(`${gateway.adminUrl}/metrics`)).text() };
}

function pay(externalId: string, details: object) {
  return rpc().createPayment({
    ...{ externalId, amount: "10.10", currency: "UAH", mode: PaymentMode.HOSTED },
    ...{ paymentMethod: { type: PaymentMethodType.CC_NUMBER }, payload: JSON.stringify(details) },
  });
}
