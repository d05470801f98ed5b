import assert from "node:assert/strict";
import { test } from "node:test";
import { type CallOptions, Code } from "@connectrpc/connect";
import type { Gateway } from "../../src/app/gateway.ts";
import { WaitUntil } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentState, PaymentStatus } from "../../src/gen/payments/v1/payment_pb.ts";
import {
  type CreatePaymentResponse,
  PaymentService,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { closing, ofSuite } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { inTime, until } from "../until.ts";
import {
  approve,
  clientOf,
  countSent,
  graphql,
  paymentInput,
  paymentRequest,
  type transports,
} from "./callers.ts";

const gateway = ofSuite(() => startTestGateway({ RECONCILE_AFTER: "60s" }));

const cards = {
  good: "4111111111111111",
  settlesLater: "4000000000000655",
  challenge: "4000000000003014",
};

interface CreateOptions extends CallOptions {
  readonly of?: Gateway;
  readonly by?: keyof typeof transports;
  readonly waitUntil?: WaitUntil;
}

/** Creates a payment and waits until it is settled, if nothing else is asked for. */
function create(
  externalId: string,
  number: string,
  { of = gateway, by, waitUntil = WaitUntil.SETTLED, ...options }: CreateOptions = {},
): Promise<CreatePaymentResponse> {
  const request = { ...paymentRequest(externalId, number), waitUntil };
  return clientOf(PaymentService, of, by).createPayment(request, { ...inTime(), ...options });
}

test("WAIT_UNTIL_ACTION answers with the page to send the customer to", async () => {
  const { ACTION } = WaitUntil;
  const { state, payment } = await create("action", cards.challenge, { waitUntil: ACTION });
  assert.equal(state, PaymentState.PENDING);
  assert.match(payment?.action?.value ?? "", /\/3ds\//);
  const settled = await create("no action", cards.settlesLater, { waitUntil: ACTION });
  assert.equal(settled.state, PaymentState.PAID);
});

test("repeats with one key share the wait, send nothing, and get the current state", async () => {
  const headers = { "idempotency-key": "shared" };
  const pay = (options: CreateOptions = {}) =>
    create("shared", cards.challenge, { headers, ...options });
  const first = await pay({ waitUntil: WaitUntil.ACTION });
  const leaves = new AbortController();
  const left = pay({ signal: leaves.signal });
  const repeats = [pay(), pay(), pay()];
  leaves.abort();
  await assert.rejects(left, { code: Code.Canceled });
  await approve(first.payment?.action?.value);
  for (const { state, payment } of await Promise.all(repeats)) {
    assert.deepEqual([state, payment?.details?.status], [PaymentState.PAID, PaymentStatus.SUCCESS]);
  }
  const { state, payment } = await pay({ waitUntil: WaitUntil.UNSPECIFIED });
  assert.equal(state, PaymentState.PAID, "a stored first answer does not freeze the state");
  assert.equal(payment?.details?.status, PaymentStatus.PENDING, "the first answer");
  assert.equal(await countSent(gateway, "shared"), 1);
});

function mutationOf(externalId: string, number: string): string {
  const input = paymentInput(externalId, number, "waitUntil: SETTLED");
  return `mutation { createPayment(input: ${input}) {
    ... on Payment { state cursor details { status } }
  } }`;
}

/** Polls until the payment is PENDING, which means that the service has answered its call. */
const untilPending = (of: Gateway, externalId: string) =>
  until(async () => {
    const { state } = await clientOf(PaymentService, of).getPayment({ externalId });
    return state === PaymentState.PENDING;
  });

/** Each starts a wait that only its caller ends. */
const ways: Readonly<
  Record<string, (of: Gateway, externalId: string, signal: AbortSignal) => Promise<unknown>>
> = {
  "the fast path of RPC": (of, externalId, signal) =>
    create(externalId, cards.challenge, { of, signal }),
  "Connect's own path": (of, externalId, signal) =>
    create(externalId, cards.challenge, { of, signal, by: "gRPC by Connect's own path" }),
  GraphQL: (of, externalId, signal) =>
    graphql(of, mutationOf(externalId, cards.challenge), { signal }),
};

test("calls that wait do not count as calls in flight, on any path", async (t) => {
  const own = closing(t, await startTestGateway({ MAX_CONCURRENT_CALLS: "2" }));
  for (const [name, begin] of Object.entries(ways)) {
    const leave = new AbortController();
    const waits: Promise<unknown>[] = [];
    for (const externalId of [1, 2, 3, 4].map((n) => `${name} ${n}`)) {
      waits.push(begin(own, externalId, leave.signal).then(() => assert.fail(), String));
      await untilPending(own, externalId);
    }
    const { payment } = await create(`beside ${name}`, cards.good, { of: own });
    assert.equal(payment?.externalId, `beside ${name}`);
    leave.abort();
    await Promise.all(waits);
  }
});

test("at a shutdown a waiting call gets the current state and the cursor to resume from", async () => {
  const of = await startTestGateway();
  const waits = (["gRPC", "Connect"] as const).map((by) => create(by, cards.challenge, { of, by }));
  await untilPending(of, "gRPC");
  await untilPending(of, "Connect");
  await of.stop();
  for (const { state, cursor } of await Promise.all(waits)) {
    assert.equal(state, PaymentState.PENDING);
    assert.notEqual(cursor, "");
  }
});
