import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { type TestContext, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { GatewayError } from "../../src/errors.ts";
import { firstEvent } from "../../src/events/current.ts";
import { paymentEntry } from "../../src/events/entry.ts";
import { createMemoryLog } from "../../src/events/memory-log.ts";
import { UpstreamErrorSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { CallOutcome, EventKind, EventSource } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentSchema, PaymentStatus } from "../../src/gen/payments/v1/payment_pb.ts";
import { evidenceOf } from "../../src/intents/evidence.ts";
import { createMemoryIntents } from "../../src/intents/memory-store.ts";
import type { Intent, IntentStoreOptions } from "../../src/intents/store.ts";
import { createReconciler } from "../../src/reconcile/reconciler.ts";
import type { Upstream } from "../../src/upstream/upstream.ts";

const account = "default";
const externalId = "order";
const { PAYMENT } = EventKind;

function rig(options: Partial<IntentStoreOptions> = {}) {
  const log = createMemoryLog({ retentionMs: 60_000 });
  const intents = createMemoryIntents({ firstLookMs: 0, giveUpMs: 60_000, ...options });
  return {
    log,
    intents,
    async begin(): Promise<Intent> {
      const id = randomUUID();
      const about = { id, kind: PAYMENT, externalId, leaseMs: 60_000, exclusive: true };
      const begun = await intents.begin(account, { ...about, method: "CreatePayment" });
      assert.ok(begun.kind === "started");
      return begun.intent;
    },
    async lose(): Promise<Intent> {
      const intent = await this.begin();
      await intents.end(account, intent, { state: "unknown" });
      return { ...intent, state: "unknown" };
    },
    async tell(paymentId: string, status: PaymentStatus) {
      const payment = create(PaymentSchema, { externalId, details: { paymentId, status } });
      const entry = paymentEntry(payment, { source: EventSource.CALLBACK });
      assert.ok(entry);
      await log.append(account, entry);
    },
    snapshot: () => log.snapshot(account, PAYMENT, externalId),
  };
}

/** Reconciles with a service that answers each request for a callback like this. */
function reconcile(
  t: TestContext,
  { log, intents }: ReturnType<typeof rig>,
  resend: () => Promise<void>,
  { giveUpMs = 60_000, remaining = 10 } = {},
) {
  const given = { settled: [] as string[], givenUp: 0, probes: 0 };
  const reconciler = createReconciler({
    accounts: new Map([
      [
        account,
        {
          upstream: { resendCallback: resend } as unknown as Upstream,
          bucket: {
            take: () => assert.fail("the upstream takes the tokens"),
            status: () => ({ limit: 10, remaining, resetSeconds: 0 }),
            close: async () => {},
          },
        },
      ],
    ]),
    log,
    intents,
    afterMs: 5,
    giveUpMs,
    timeoutMs: 5,
    observer: {
      onSettled: ({ by }) => void given.settled.push(by),
      onProbe: () => void given.probes++,
      onGivenUp: () => void given.givenUp++,
      onStats: () => {},
      onFailure: ({ error }) => assert.fail(error as Error),
    },
  });
  // The reconciler's own timers need not keep the process alive.
  const alive = setInterval(() => {}, 1_000);
  t.after(async () => {
    clearInterval(alive);
    await reconciler.close();
  });
  return given;
}

function told(code: string, paymentId?: string): GatewayError {
  const upstream = create(UpstreamErrorSchema, { code, ...(paymentId && { paymentId }) });
  return new GatewayError("NOT_FOUND", code, { upstream });
}

async function until(right: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await right())) await new Promise((resolve) => setTimeout(resolve, 5));
}

test("a late failure of an earlier, answered attempt is no word about this one", async () => {
  const books = rig();
  const first = await books.begin();
  const refused = { state: "closed", subjectId: "p1", key: "keep" } as const;
  await books.intents.end(account, first, refused);
  const second = await books.lose();
  await books.tell("p1", PaymentStatus.FAILURE);
  assert.equal(evidenceOf(second, await books.snapshot()), undefined);
  const forgetful = { ...second, answered: [] };
  assert.deepEqual(evidenceOf(forgetful, await books.snapshot()), { kind: "settled" });
  await books.tell("p2", PaymentStatus.PENDING);
  const arrived = { kind: "arrived", subjectId: "p2" };
  assert.deepEqual(evidenceOf(second, await books.snapshot()), arrived);
  await books.tell("p2", PaymentStatus.FAILURE);
  assert.deepEqual(evidenceOf(second, await books.snapshot()), { kind: "settled" });
});

for (const paymentId of ["p9", undefined]) {
  test(`already paid after doubt means paid (payment_id ${paymentId})`, async (t) => {
    const books = rig();
    await books.lose();
    const given = reconcile(t, books, async () => {
      throw told("transaction_already_paid", paymentId);
    });
    await until(
      () =>
        given.settled.length > 0 ||
        books.intents.open(account, PAYMENT, externalId).then((open) => open.length === 0),
    );
    const snapshot = await books.snapshot();
    const event = snapshot && firstEvent(snapshot);
    assert.ok(event?.resource.case === "payment");
    assert.equal(event.resource.value.details?.status, PaymentStatus.SUCCESS);
    assert.equal(event.source, EventSource.RECONCILIATION);
    assert.equal(event.paymentId, paymentId);
    assert.equal(event.final, true);
  });
}

test("what the service does not know is not done only after a while and three times over", async (t) => {
  const books = rig();
  await books.lose();
  let asked = 0;
  const given = reconcile(t, books, async () => {
    asked++;
    throw told("transaction_not_found");
  });
  await until(() => given.settled.length > 0);
  assert.deepEqual(given.settled, ["notFound"]);
  assert.ok(asked >= 3, `asked ${asked} times`);
  await books.begin();
});

test("a service out of reach settles nothing, and counts for nothing", async (t) => {
  const books = rig();
  const lost = await books.lose();
  const given = reconcile(t, books, async () => {
    // A bare 404 may be a proxy's.
    throw new GatewayError("NOT_FOUND", "HTTP 404", {
      upstream: create(UpstreamErrorSchema, { httpStatus: 404 }),
    });
  });
  await until(() => given.probes >= 4);
  const [open] = await books.intents.open(account, PAYMENT, externalId);
  assert.deepEqual([open?.id, open?.notFound, open?.checks], [lost.id, 0, 0]);
});

test("nothing is asked while the budget is in use", async (t) => {
  const books = rig();
  await books.lose();
  const given = reconcile(t, books, async () => assert.fail("asked"), { remaining: 5 });
  // What comes by itself settles all the same.
  await books.tell("p1", PaymentStatus.SUCCESS);
  await until(() => given.settled.length > 0);
  assert.deepEqual([given.settled, given.probes], [["event"], 0]);
});

test("what is not settled in time is an operator's, and bars nothing any more", async (t) => {
  const books = rig({ giveUpMs: 60_000 });
  await books.lose();
  const given = reconcile(t, books, async () => {}, { giveUpMs: 30 });
  await until(() => given.givenUp > 0);
  const [open] = await books.intents.open(account, PAYMENT, externalId);
  assert.equal(open?.needsOperator, true);
  const snapshot = await books.snapshot();
  assert.equal(snapshot && firstEvent(snapshot)?.callOutcome, CallOutcome.NEEDS_OPERATOR);
  await books.begin();
});
