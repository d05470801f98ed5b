import assert from "node:assert/strict";
import { after, before, describe, it, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { type CallOptions, Code, ConnectError, createClient } from "@connectrpc/connect";
import {
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
} from "@connectrpc/connect-node";
import type { Gateway } from "../../src/app/gateway.ts";
import { OutcomeUnknownSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { WaitUntil } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentState, PaymentStatus } from "../../src/gen/payments/v1/payment_pb.ts";
import {
  type CreatePaymentResponse,
  PaymentService,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { PayoutState } from "../../src/gen/payments/v1/payout_pb.ts";
import { PayoutService } from "../../src/gen/payments/v1/payout_service_pb.ts";
import { startTestGateway } from "../start.ts";
import { inTime, timeoutMs, until } from "../until.ts";
import { graphql, paymentOf } from "./callers.ts";

let gateway: Gateway;
before(async () => {
  gateway = await startTestGateway({ RECONCILE_AFTER: "60s" });
});
after(() => gateway.stop());

const cards = {
  good: "4111111111111111",
  settlesLater: "4000000000000655",
  declinedLater: "4000000000000663",
  challenge: "4000000000003014",
  answerLost: "4000000000000762",
  htmlError: "4000000000000721",
  silence: "4000000000000838",
};

for (const [name, transport] of Object.entries({
  "the fast path": () => createGrpcTransport({ baseUrl: gateway.rpcUrl }),
  "Connect's own path": () =>
    createGrpcTransport({
      baseUrl: gateway.rpcUrl,
      sendCompression: compressionGzip,
      compressMinBytes: 0,
    }),
})) {
  test(`a wait until SETTLED answers a payment with PAID, by ${name}`, async () => {
    const externalId = `settled ${name}`;
    const payments = createClient(PaymentService, transport());
    const answer = await payments.createPayment(
      { ...paymentOf(externalId, cards.settlesLater), waitUntil: WaitUntil.SETTLED },
      inTime(),
    );
    assert.equal(answer.state, PaymentState.PAID);
    assert.equal(answer.payment?.details?.status, PaymentStatus.SUCCESS);
    assert.notEqual(answer.cursor, "");
    const known = await payments.getPayment({ externalId });
    assert.deepEqual([known.state, known.cursor], [answer.state, answer.cursor]);
  });
}

test("a wait until SETTLED ends with FAILED at a later decline", async () => {
  const answer = await create("declined", cards.declinedLater);
  assert.equal(answer.state, PaymentState.FAILED);
  assert.equal(answer.payment?.details?.statusCode, "transaction_declined");
});

test("WAIT_UNTIL_ACTION answers with the page to send the customer to", async () => {
  const { ACTION } = WaitUntil;
  const { state, payment } = await create("action", cards.challenge, { waitUntil: ACTION });
  assert.equal(state, PaymentState.PENDING);
  assert.match(payment?.action?.value ?? "", /\/3ds\//);
  const settled = await create("no action", cards.settlesLater, { waitUntil: ACTION });
  assert.equal(settled.state, PaymentState.PAID);
});

test("repeats with one key share the wait, send nothing, and get the current state", async () => {
  const externalId = "shared";
  const headers = { "idempotency-key": "shared" };
  const first = await create(externalId, cards.challenge, {
    waitUntil: WaitUntil.ACTION,
    options: { headers },
  });
  const leaves = new AbortController();
  const left = create(externalId, cards.challenge, {
    options: { headers, signal: leaves.signal },
  });
  const repeats = [1, 2, 3].map(() =>
    create(externalId, cards.challenge, { options: { headers } }),
  );
  await delay(50);
  leaves.abort();
  await assert.rejects(left, { code: Code.Canceled });
  await approve(first.payment?.action?.value ?? "");
  for (const { state, payment } of await Promise.all(repeats)) {
    assert.equal(state, PaymentState.PAID);
    assert.equal(payment?.details?.status, PaymentStatus.SUCCESS);
  }
  const without = await create(externalId, cards.challenge, {
    waitUntil: WaitUntil.UNSPECIFIED,
    options: { headers },
  });
  assert.equal(without.state, PaymentState.PAID, "a stored first answer does not freeze the state");
  assert.equal(without.payment?.details?.status, PaymentStatus.PENDING, "the first answer");
  assert.equal(await countSent(externalId), 1);
});

describe("a wait with a caller's deadline", { concurrency: true }, () => {
  // The wait leaves a tenth of this time for the answer.
  const timeoutMs = 12_000;

  it("ends before the deadline with the current state", async () => {
    const externalId = "deadline";
    const { state, cursor, payment } = await create(externalId, cards.challenge, {
      options: { timeoutMs },
    });
    assert.equal(state, PaymentState.PENDING);
    assert.match(payment?.action?.value ?? "", /3ds/);
    assert.notEqual(cursor, "");
  });
});

test("an unknown outcome that is settled during the wait is answered like any other", async () => {
  const { state, payment } = await create("lost answer", cards.answerLost);
  assert.equal(state, PaymentState.PAID);
  assert.equal(payment?.details?.status, PaymentStatus.SUCCESS);
});

test("a call that proves NOT_DONE ends the wait at once", async (t) => {
  const own = await startTestGateway({ RECONCILE_AFTER: "200ms", UPSTREAM_TIMEOUT: "1s" });
  t.after(() => own.stop());
  const made = payments(own).createPayment(
    { ...paymentOf("not done", cards.htmlError), waitUntil: WaitUntil.SETTLED },
    { timeoutMs: 250_000 },
  );
  const abort = AbortSignal.timeout(timeoutMs);
  const ended = Promise.race([
    made,
    new Promise((_, reject) => abort.addEventListener("abort", () => reject(new Error("late")))),
  ]);
  await assert.rejects(ended, isUnknown);
  // The lock is released right after the event that ends the wait.
  await until(async () => {
    const known = payments(own).getPayment({ externalId: "not done" });
    return (await known.catch(ConnectError.from)) instanceof ConnectError;
  });
  await assert.rejects(payments(own).getPayment({ externalId: "not done" }), {
    code: Code.NotFound,
  });
});

test("a wait for a confirmation does not end with the AUTHORIZED state of the hold", async () => {
  const externalId = "hold";
  await create(externalId, cards.good, { confirm: false, amount: "100.00" });
  const answer = await payments().confirmPayment(
    { externalId, amount: "99.65", waitUntil: WaitUntil.SETTLED },
    inTime(),
  );
  assert.equal(answer.state, PaymentState.PAID);
});

test("a wait until SETTLED answers a payout with PAID", async () => {
  const answer = await createClient(PayoutService, transport()).requestPayout(
    {
      order: {
        currency: "UAH",
        description: "salary",
        externalId: "payout",
        originalAmount: "10.00",
      },
      payer: { entityId: "e" },
      payoutType: "cash",
      recipient: { cash: { firstName: "Jo", lastName: "Doe" } },
      waitUntil: WaitUntil.SETTLED,
    },
    inTime(),
  );
  assert.equal(answer.state, PayoutState.PAID);
  assert.equal(answer.payout?.status?.toLowerCase(), "success");
});

test("GraphQL waits with the input field waitUntil", async () => {
  const made = await graphql(gateway, mutationOf("by graphql", cards.settlesLater));
  assert.equal(made.errors, undefined);
  const known = await graphql(gateway, `{ payment(externalId: "by graphql") { state cursor } }`);
  const { details, ...told } = made.data.createPayment as Record<string, unknown>;
  assert.deepEqual(details, { status: "SUCCESS" });
  assert.deepEqual(told, known.data.payment);
  assert.equal(told.state, "PAID");
});

/** Each starts a wait that only its caller ends. */
const ways: Readonly<
  Record<string, (of: Gateway, externalId: string, signal: AbortSignal) => Promise<unknown>>
> = {
  "the fast path of RPC": (of, externalId, signal) =>
    payments(of).createPayment(waitingFor(externalId), { signal }),
  "Connect's own path": (of, externalId, signal) =>
    createClient(
      PaymentService,
      createGrpcTransport({
        baseUrl: of.rpcUrl,
        sendCompression: compressionGzip,
        compressMinBytes: 0,
      }),
    ).createPayment(waitingFor(externalId), { signal }),
  GraphQL: (of, externalId, signal) =>
    graphql(of, mutationOf(externalId, cards.challenge), { signal }),
};

for (const [name, begin] of Object.entries(ways)) {
  test(`calls that wait by ${name} do not count as calls in flight`, async (t) => {
    const own = await startTestGateway({ MAX_CONCURRENT_CALLS: "2" });
    t.after(() => own.stop());
    const leave = new AbortController();
    const waits: Promise<unknown>[] = [];
    for (const externalId of ["wait 1", "wait 2", "wait 3", "wait 4"]) {
      waits.push(
        begin(own, externalId, leave.signal).then(
          () => "answered",
          () => "left",
        ),
      );
      await untilPending(own, externalId);
    }
    const { state } = await payments(own).createPayment(paymentOf("beside", cards.good));
    assert.equal(state, PaymentState.PAID);
    leave.abort();
    assert.deepEqual(new Set(await Promise.all(waits)), new Set(["left"]));
  });
}

test("at a shutdown a waiting call gets the current state and the cursor to resume from", async () => {
  const own = await startTestGateway();
  const clients = {
    grpc: createGrpcTransport({ baseUrl: own.rpcUrl }),
    connect: createConnectTransport({ baseUrl: own.rpcUrl, httpVersion: "1.1" }),
  };
  const waits = Object.entries(clients).map(([name, transport]) =>
    createClient(PaymentService, transport).createPayment(
      { ...paymentOf(`drained ${name}`, cards.challenge), waitUntil: WaitUntil.SETTLED },
      inTime(),
    ),
  );
  for (const name of Object.keys(clients)) await untilPending(own, `drained ${name}`);
  await own.stop();
  for (const { state, cursor } of await Promise.all(waits)) {
    assert.equal(state, PaymentState.PENDING);
    assert.notEqual(cursor, "");
  }
});

interface CreateOptions {
  readonly waitUntil?: WaitUntil;
  readonly confirm?: boolean;
  readonly amount?: string;
  readonly options?: CallOptions;
}

function create(
  externalId: string,
  number: string,
  { waitUntil = WaitUntil.SETTLED, options, ...rest }: CreateOptions = {},
): Promise<CreatePaymentResponse> {
  const request = { ...paymentOf(externalId, number), ...rest, waitUntil };
  return payments().createPayment(request, { ...inTime(), ...options });
}

function waitingFor(externalId: string) {
  return { ...paymentOf(externalId, cards.challenge), waitUntil: WaitUntil.SETTLED };
}

function mutationOf(externalId: string, number: string): string {
  return `mutation {
    createPayment(input: {
      amount: "10.10", currency: "UAH", mode: DIRECT, externalId: "${externalId}", waitUntil: SETTLED,
      customer: { email: "customer@shop.example" }
      paymentMethod: { method: { cc: {
        number: "${number}", cvv: "123", expMonth: 12, expYear: 2031
      } } }
    }) { ... on Payment { state cursor details { status } } }
  }`;
}

function isUnknown(error: unknown): boolean {
  assert(error instanceof ConnectError, String(error));
  assert.equal(error.code, Code.Unknown);
  assert.equal(error.findDetails(OutcomeUnknownSchema).length, 1);
  return true;
}

async function approve(page: string): Promise<void> {
  await fetch(page, { method: "POST", body: new URLSearchParams({ decision: "approve" }) });
}

/** Polls until the payment is PENDING, which means that the service has answered its call. */
async function untilPending(of: Gateway, externalId: string): Promise<void> {
  const deadlineMs = Date.now() + timeoutMs;
  for (;;) {
    const known = await payments(of)
      .getPayment({ externalId })
      .catch(() => undefined);
    if (known?.state === PaymentState.PENDING) return;
    assert(Date.now() < deadlineMs, `${externalId} is made`);
    await delay(10);
  }
}

/** Number of requests for this external_id that the service received. */
async function countSent(externalId: string): Promise<number> {
  const query = `type=request&external_id=${externalId}`;
  const response = await fetch(`${gateway.sandboxUrl}/__sandbox/journal?${query}`, {
    headers: { authorization: `Basic ${btoa("sandbox:sandbox-password")}` },
  });
  return ((await response.json()) as { entries: unknown[] }).entries.length;
}

function payments(of = gateway) {
  return createClient(PaymentService, transport(of));
}

function transport({ rpcUrl } = gateway) {
  return createGrpcTransport({ baseUrl: rpcUrl });
}
