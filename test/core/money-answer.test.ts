import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Context } from "../../src/core/context.ts";
import type { Call } from "../../src/core/core.ts";
import { moneyAnswer } from "../../src/core/money-answer.ts";
import type { Made } from "../../src/core/money-calls.ts";
import { createStreamLimits } from "../../src/core/stream-limits.ts";
import { GatewayError } from "../../src/errors.ts";
import { CallOutcome, EventKind, WaitUntil } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentState } from "../../src/gen/payments/v1/payment_pb.ts";
import { PayoutState } from "../../src/gen/payments/v1/payout_pb.ts";
import { callOutcomeEntry } from "../../src/ledger/call-outcome.ts";
import type { IntentStore } from "../../src/ledger/intents.ts";
import { createMemoryLedger } from "../../src/ledger/memory.ts";
import { Drain } from "../../src/live/drain.ts";
import { payment } from "../ledger/entries.ts";

const about = { account: "default", kind: EventKind.PAYMENT, externalId: "order-1" };
const theAnswer = { name: "the answer itself" };
const nothing = { state: PaymentState.UNSPECIFIED, payoutState: PayoutState.UNSPECIFIED };
const { externalId } = about;
const lost = new GatewayError("UNKNOWN", "lost", { outcomeUnknown: { externalId } });
/** The store's answer to the first try was lost. */
const duplicate = { outcome: "duplicate", conflict: false } as const;

interface Of {
  readonly until: WaitUntil;
  readonly log: Context["log"];
}

/** An answer whose store reads with `known`, for a caller who waits for `until` or does not. */
function answered(
  made: Made<typeof theAnswer> | GatewayError,
  known: IntentStore["known"],
  { until = WaitUntil.UNSPECIFIED, log, ...given }: Partial<Call & Of> = {},
) {
  const context = {
    ...{ log, intents: { known }, waits: new Drain(), waitLimits: createStreamLimits(10) },
  } as unknown as Context;
  const caller = { name: "test", account: about.account, scopes: new Set<never>() };
  const { signal } = new AbortController();
  const making = made instanceof GatewayError ? Promise.reject(made) : Promise.resolve(made);
  const answer = moneyAnswer(
    ...([context, { caller, requestId: "r", signal, ...given }, about, until, making] as const),
  );
  answer.catch(() => {});
  return answer;
}

/** A ledger, and answers for callers who wait until the payment of the log is settled. */
function rig(t: TestContext) {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_000_000 });
  const log = createMemoryLedger({ retentionMs: 3_600_000, firstLookMs: 60_000, giveUpMs: 60_000 });
  return {
    log,
    append: (told: Parameters<typeof payment>[0]) => log.append(about.account, payment(told)),
    /** A call of unknown outcome; the returned function ends it as not done. */
    async begin() {
      t.mock.timers.tick(1);
      const call = { id: "c", method: "CreatePayment", ...about, leaseMs: 60_000 } as const;
      const begun = await log.begin(about.account, call);
      assert.ok(begun.kind === "started");
      await log.end(about.account, begun.intent, { state: "unknown" });
      return async () => {
        await log.end(about.account, begun.intent, { state: "closed", key: "free" });
        await log.append(about.account, callOutcomeEntry(call, CallOutcome.NOT_DONE));
      };
    },
    waited: (made: Parameters<typeof answered>[0], call: Partial<Call> = {}) =>
      answered(made, log.known.bind(log), { log, until: WaitUntil.SETTLED, ...call }),
    async passes(ms = 0) {
      for (let i = 0; i < 5; i++) await new Promise(setImmediate);
      t.mock.timers.tick(ms);
    },
  };
}

test("the state after an answer is no longer waited for once the caller goes away", async () => {
  const leaving = new AbortController();
  const asked = Promise.withResolvers<void>();
  const silent = () => {
    asked.resolve();
    return new Promise<never>(() => {});
  };
  const answer = answered({ answer: theAnswer }, silent, { signal: leaving.signal });
  await asked.promise;
  leaving.abort();
  assert.deepEqual(await answer, { answer: theAnswer, ...nothing, cursor: "" });
});

test("the state after an answer comes from it alone while the log cannot be read", async () => {
  const entry = payment({ status: "success" });
  for (const error of [new GatewayError("UNAVAILABLE", "away"), new Error("a mistake of ours")]) {
    const away = () => Promise.reject(error);
    const plain = await answered({ answer: theAnswer }, away);
    assert.deepEqual(plain, { answer: theAnswer, ...nothing, cursor: "" });
    for (const appended of [undefined, duplicate]) {
      const { state, cursor } = await answered({ answer: theAnswer, entry, appended }, away);
      assert.deepEqual([state, cursor], [PaymentState.PAID, ""]);
    }
  }
});

test("a wait that ends without news does not tell the failure of an earlier attempt", async (t) => {
  const { begin, append, waited, passes } = rig(t);
  const confirm = (status: string) => ({ operation: "confirm", status, paymentId: "p-1" });
  // A payment of unknown outcome, of which one confirmation has failed and another is pending.
  await begin();
  await append(confirm("failure"));
  await append(confirm("pending"));
  const made = { answer: theAnswer, entry: payment(confirm("pending")), appended: duplicate };
  const early = waited(made);
  await passes(30_000);
  assert.deepEqual((await early).answer, theAnswer);
  const late = waited(made);
  await append(confirm("success"));
  await passes(30_000);
  assert.notDeepEqual((await late).answer, theAnswer, "what came later is told");
});

test("a lost call is not answered with the failure of an earlier attempt", async (t) => {
  const { begin, append, waited, passes } = rig(t);
  await append({ paymentId: "p-0", status: "failure" });
  const endsNotDone = await begin();
  const early = waited(lost);
  await passes(30_000);
  await assert.rejects(early, lost, "nothing came");
  const late = waited(lost);
  await passes();
  await endsNotDone();
  await assert.rejects(late, lost, "it was not done");
});

test("an answer that is not in the log is not waited for", async (t) => {
  const { append, waited, passes } = rig(t);
  await append({ status: "pending" });
  const entry = payment({ status: "pending" });
  for (const [appended, waits] of [
    [undefined, 0],
    [duplicate, 1],
  ] as const) {
    let waiting = 0;
    const answer = waited({ answer: theAnswer, entry, appended }, { onWait: () => waiting++ });
    await passes(30_000);
    await answer;
    assert.equal(waiting, waits);
  }
});

test("a deadline that passes during a wait does not deny a call that was sent", async (t) => {
  const { append, waited, passes } = rig(t);
  await append({ status: "pending" });
  const deadline = new AbortController();
  const { signal } = deadline;
  const [known, unknown] = [waited({ answer: theAnswer }, { signal }), waited(lost, { signal })];
  await passes();
  deadline.abort(new DOMException("the deadline passed", "TimeoutError"));
  assert.equal((await known).answer, theAnswer);
  const { details } = lost;
  await assert.rejects(unknown, ({ code, ...told }: GatewayError) => {
    assert.deepEqual(told.details.outcomeUnknown, details.outcomeUnknown);
    return code === "DEADLINE_EXCEEDED";
  });
});
