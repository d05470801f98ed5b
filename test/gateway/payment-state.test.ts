import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { DescEnum } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { createClient as createSseClient } from "graphql-sse";
import { createClient as createWsClient } from "graphql-ws";
import WebSocket from "ws";
import type { Gateway } from "../../src/app/gateway.ts";
import { EventSourceSchema } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentMode } from "../../src/gen/payments/v1/payment_input_pb.ts";
import {
  PaymentOperationSchema,
  PaymentStateSchema,
  PaymentStatusSchema,
} from "../../src/gen/payments/v1/payment_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { PayoutState } from "../../src/gen/payments/v1/payout_pb.ts";
import { PayoutService } from "../../src/gen/payments/v1/payout_service_pb.ts";
import { sign } from "../../src/wire/signature.ts";
import { startTestGateway } from "../start.ts";
import { inTime, timeoutMs } from "../until.ts";

let gateway: Gateway;
before(async () => {
  gateway = await startTestGateway({
    RECONCILE_AFTER: "200ms",
    UPSTREAM_TIMEOUT: "1s",
    PAYOUT_SUCCESS_STATUSES: "completed",
  });
});
after(() => gateway.stop());

describe("the state of a payment", { timeout: 120_000 }, () => {
  it("is AUTHORIZED, PAID, PARTIALLY_REFUNDED, REFUNDED for a hold that is confirmed and refunded", async () => {
    const externalId = "hold";
    const watched = watchUntil(externalId, "REFUNDED");
    const live = subscribe(sse, externalId, {}, (seen) => seen.at(-1)?.state === "REFUNDED");

    const made = await pay(externalId, { confirm: false });
    assert.equal(nameOf(PaymentStateSchema, made.state), "AUTHORIZED");
    const paymentId = made.payment?.details?.paymentId;
    assert.deepEqual(await standing(externalId), ["AUTHORIZED", "PAYMENT SUCCESS 10.10"]);
    // The payment's callback does not change the state, but it must arrive before the next step.
    await untilEvent(externalId, made.cursor);

    const confirmed = await rpc().confirmPayment({ externalId });
    assert.equal(nameOf(PaymentStateSchema, confirmed.state), "PAID");
    assert.deepEqual((await standing(externalId)).slice(0, 1), ["PAID"]);

    await refund(paymentId, 4);
    await watchUntil(externalId, "PARTIALLY_REFUNDED");
    assert.deepEqual(await standing(externalId), [
      ...["PARTIALLY_REFUNDED", "PAYMENT SUCCESS 10.10", "CONFIRM SUCCESS 10.10"],
      "REFUND SUCCESS 4",
    ]);
    await refund(paymentId);
    const states = ["AUTHORIZED", "PAID", "PARTIALLY_REFUNDED", "REFUNDED"];
    assert.deepEqual(withoutRepeats(await watched), states);
    assert.deepEqual(withoutRepeats((await live).map(({ state }) => state)), states);

    const { payment } = await graphql(`{ payment(externalId: "${externalId}") {
      state cursor operations { operation status amount } } }`);
    const rpcView = await rpc().getPayment({ externalId });
    assert.deepEqual(
      [payment?.state, payment?.cursor],
      [nameOf(PaymentStateSchema, rpcView.state), rpcView.cursor],
    );
    assert.deepEqual(
      ((payment?.operations ?? []) as Record<string, string>[]).map(
        ({ operation, status, amount }) => `${operation} ${status} ${amount}`,
      ),
      (await standing(externalId)).slice(1),
    );
    assert.equal((await standing(externalId))[0], "REFUNDED");
  });

  it("is in the answer, and a watch resumes from the answer's cursor", async () => {
    const externalId = "answered";
    const { payment, state, cursor } = await pay(externalId);
    assert.equal(nameOf(PaymentStateSchema, state), "PAID");
    await refund(payment?.details?.paymentId);
    const seen = await watchUntil(externalId, "REFUNDED", { afterCursor: cursor });
    assert.deepEqual(withoutRepeats(seen).slice(-2), ["PAID", "REFUNDED"]);
  });
});

describe("a watch from the start", { timeout: 120_000 }, () => {
  it("begins with the oldest event by gRPC and GraphQL", async () => {
    const externalId = "from-start";
    await callback(externalId, "payment", "pending");
    await callback(externalId, "payment", "success");
    await callback(externalId, "refund", "success");
    const all = ["PENDING", "PAID", "REFUNDED"];
    assert.deepEqual(await watchUntil(externalId, "REFUNDED", { fromStart: true }), all);
    assert.deepEqual(await watchUntil(externalId, "REFUNDED"), ["REFUNDED"], "the control");
    for (const transport of [sse, webSocket]) {
      const seen = await subscribe(transport, externalId, { after: "earliest" }, (events) =>
        events.some(({ state }) => state === "REFUNDED"),
      );
      assert.deepEqual(
        seen.map(({ state }) => state),
        all,
      );
    }
  });

  it("is refused together with a cursor, and RPC does not accept `earliest` as a cursor", async () => {
    for (const wrong of [{ fromStart: true, afterCursor: "1" }, { afterCursor: "earliest" }]) {
      const next = rpc().watchPayment({ externalId: "from-start", ...wrong }, inTime());
      await assert.rejects(next[Symbol.asyncIterator]().next(), { code: Code.InvalidArgument });
    }
  });
});

describe("a watch with untilFinal", { timeout: 120_000 }, () => {
  it("ends after the final event, or at once behind it, by gRPC, SSE and WebSocket", async () => {
    const externalId = "over";
    await callback(externalId, "payment", "pending");
    const pending = await rpc().getPayment({ externalId });
    await callback(externalId, "payment", "success");
    const { cursor } = await rpc().getPayment({ externalId });
    for (const [after, states] of [
      [cursor, []],
      [pending.cursor, ["PAID"]],
    ] as const) {
      assert.deepEqual(await watchUntil(externalId, undefined, untilFinal(after)), states);
      for (const transport of [sse, webSocket]) {
        const seen = await subscribe(transport, externalId, { after, untilFinal: true });
        assert.deepEqual(
          seen.map(({ state }) => state),
          states,
        );
      }
    }
  });
});

describe("the state of a payout", { timeout: 120_000 }, () => {
  it("follows PAYOUT_SUCCESS_STATUSES", async () => {
    const payouts = createClient(PayoutService, transport());
    const externalId = "payout";
    const tell = (status: string) =>
      sendCallback("payouts", {
        external_id: externalId,
        transaction_id: "tx-1",
        status,
      });
    const stateAfter = async (status: string) => {
      await tell(status);
      return (await payouts.getPayout({ externalId })).state;
    };
    // `success` is not in PAYOUT_SUCCESS_STATUSES.
    assert.equal(await stateAfter("success"), PayoutState.PENDING);
    assert.equal(await stateAfter("COMPLETED"), PayoutState.PAID);
    const query = `{ payout(externalId: "${externalId}") { state } }`;
    assert.equal((await graphql(query)).payout?.state, "PAID");
    const states: string[] = [];
    for await (const { event } of payouts.watchPayout({ externalId, untilFinal: true }, inTime())) {
      if (event) states.push(`${nameOf(PaymentStateSchema, event.state)} final=${event.final}`);
    }
    assert.deepEqual(states, ["PAID final=true"]);
  });
});

describe("what becomes of a call whose callback is lost", { timeout: 120_000 }, () => {
  it("of a payment is asked for by operation info", async () => {
    const externalId = "callback-lost";
    const { state, cursor } = await pay(externalId, { number: "4000000000000697" });
    assert.equal(nameOf(PaymentStateSchema, state), "PENDING");
    const events = rpc().watchPayment(
      { externalId, afterCursor: cursor, untilFinal: true },
      inTime(),
    );
    const sources: string[] = [];
    for await (const { event } of events) {
      if (event) sources.push(nameOf(EventSourceSchema, event.source));
    }
    assert.deepEqual(sources, ["RECONCILIATION"]);
    assert.equal((await standing(externalId))[0], "PAID");
  });

  it("of a payout is asked for by payout info", async () => {
    const payouts = createClient(PayoutService, transport());
    const externalId = "payout-lost";
    const lost = payouts.requestPayout({
      order: { currency: "UAH", description: "salary", externalId, originalAmount: "10.71" },
      payer: { entityId: "e" },
      payoutType: "cash",
      recipient: { cash: { firstName: "Jo", lastName: "Doe" } },
    });
    await assert.rejects(lost, { code: Code.Unknown });
    for await (const { event } of payouts.watchPayout({ externalId }, inTime())) {
      if (event && nameOf(EventSourceSchema, event.source) === "RECONCILIATION") return;
    }
    assert.fail("the watch ended");
  });
});

function rpc() {
  return createClient(PaymentService, transport());
}

function transport() {
  return createGrpcTransport({ baseUrl: gateway.rpcUrl });
}

function pay(externalId: string, { number = "4111111111111111", confirm = true } = {}) {
  return rpc().createPayment({
    amount: "10.10",
    currency: "UAH",
    mode: PaymentMode.DIRECT,
    externalId,
    confirm,
    customer: { email: "customer@shop.example" },
    paymentMethod: {
      method: { case: "cc", value: { number, cvv: "123", expMonth: 12, expYear: 2031 } },
    },
  });
}

/** Refunds a payment in the sandbox, as a merchant does on the service's site. */
async function refund(paymentId: string | undefined, amount?: number): Promise<void> {
  const authorization = `Basic ${Buffer.from("sandbox:sandbox-password").toString("base64")}`;
  const response = await fetch(`${gateway.sandboxUrl}/sandbox/payments/${paymentId}/refund`, {
    method: "POST",
    headers: { authorization, "content-type": "application/json" },
    ...(amount !== undefined && { body: JSON.stringify({ amount }) }),
  });
  const text = await response.text();
  assert.equal(response.status, 200, text);
}

/** The state from GetPayment, followed by the payment's operations. */
async function standing(externalId: string): Promise<string[]> {
  const { state, operations } = await rpc().getPayment({ externalId });
  return [
    nameOf(PaymentStateSchema, state),
    ...operations.map(({ operation, status, amount, at }) => {
      assert(at && at.seconds > 0n);
      const what = nameOf(PaymentOperationSchema, operation);
      return `${what} ${nameOf(PaymentStatusSchema, status)} ${amount}`;
    }),
  ];
}

type Watched = Pick<
  Parameters<ReturnType<typeof rpc>["watchPayment"]>[0],
  "afterCursor" | "fromStart" | "untilFinal"
>;

const untilFinal = (afterCursor: string) => ({ afterCursor, untilFinal: true });

/** The states that a watch delivers, up to and including `last`, or until the watch ends. */
async function watchUntil(
  externalId: string,
  last: string | undefined,
  request: Watched = {},
): Promise<string[]> {
  const leave = new AbortController();
  const signal = AbortSignal.any([leave.signal, AbortSignal.timeout(timeoutMs)]);
  const states: string[] = [];
  try {
    for await (const { event } of rpc().watchPayment({ ...request, externalId }, { signal })) {
      if (!event) continue;
      states.push(nameOf(PaymentStateSchema, event.state));
      if (states.at(-1) === last) return states;
    }
    assert.equal(last, undefined, `ended after ${states}`);
    return states;
  } finally {
    leave.abort();
  }
}

/** Resolves when an event follows this cursor. */
async function untilEvent(externalId: string, afterCursor: string): Promise<void> {
  const leave = new AbortController();
  const signal = AbortSignal.any([leave.signal, AbortSignal.timeout(timeoutMs)]);
  try {
    for await (const { event } of rpc().watchPayment({ externalId, afterCursor }, { signal })) {
      if (event) return;
    }
  } finally {
    leave.abort();
  }
}

interface Updated {
  readonly state: string;
}

interface SubscriptionClient {
  iterate(payload: { query: string; variables: Record<string, unknown> }): AsyncIterableIterator<{
    data?: { paymentUpdated: Updated } | null | undefined;
    errors?: unknown;
  }>;
  dispose(): void | Promise<void>;
}

const subscription = `subscription ($externalId: ID!, $after: String, $untilFinal: Boolean) {
  paymentUpdated(externalId: $externalId, after: $after, untilFinal: $untilFinal) { state }
}`;

function sse(): SubscriptionClient {
  return createSseClient({
    url: `${gateway.publicUrl}/graphql`,
    retryAttempts: 0,
  }) as unknown as SubscriptionClient;
}

function webSocket(): SubscriptionClient {
  return createWsClient({
    url: `${gateway.publicUrl.replace("http", "ws")}/graphql`,
    webSocketImpl: WebSocket,
    retryAttempts: 0,
  }) as unknown as SubscriptionClient;
}

/** The events that a subscription delivers, until it ends or `isEnough` returns true. */
async function subscribe(
  connect: () => SubscriptionClient,
  externalId: string,
  options: { after?: string; untilFinal?: boolean },
  isEnough: (seen: readonly Updated[]) => boolean = () => false,
): Promise<Updated[]> {
  const client = connect();
  const seen: Updated[] = [];
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`late, after ${seen.length}`)), timeoutMs);
  const reading = (async () => {
    const variables = { externalId, ...options };
    for await (const { data, errors } of client.iterate({ query: subscription, variables })) {
      assert.equal(errors, undefined);
      if (data) seen.push(data.paymentUpdated);
      if (isEnough(seen)) break;
    }
    return seen;
  })();
  try {
    return await Promise.race([reading, late]);
  } finally {
    clearTimeout(timer);
    await client.dispose();
    await reading.catch(() => undefined);
  }
}

async function graphql(query: string) {
  const response = await fetch(`${gateway.publicUrl}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ query }),
  });
  const { data, errors } = (await response.json()) as {
    data: Record<string, Record<string, unknown> | null>;
    errors?: unknown;
  };
  assert.equal(errors, undefined);
  return data;
}

function callback(externalId: string, operation: string, status: string, payment = "pay") {
  return sendCallback("payments", {
    external_id: externalId,
    operation,
    details: {
      ...{ payment_id: `${payment}-${externalId}`, status, amount: "5.00", currency: "UAH" },
    },
  });
}

async function sendCallback(kind: "payments" | "payouts", told: object): Promise<void> {
  const body = new TextEncoder().encode(JSON.stringify(told));
  const response = await fetch(`${gateway.publicUrl}/callbacks/default/${kind}`, {
    method: "POST",
    headers: { "x-service-signature": sign(body, "sandbox-password") },
    body,
  });
  await response.arrayBuffer();
  assert.equal(response.status, 200);
}

function nameOf(desc: DescEnum, value: number): string {
  return desc.value[value]?.localName ?? `${value}`;
}

function withoutRepeats(states: readonly string[]): string[] {
  return states.filter((state, at) => state !== states[at - 1]);
}
