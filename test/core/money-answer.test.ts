import assert from "node:assert/strict";
import { test } from "node:test";
import type { Context } from "../../src/core/context.ts";
import type { Call } from "../../src/core/core.ts";
import { moneyAnswer } from "../../src/core/money-answer.ts";
import type { Made } from "../../src/core/money-calls.ts";
import { createStreamLimits } from "../../src/core/stream-limits.ts";
import { GatewayError } from "../../src/errors.ts";
import { EventKind, WaitUntil } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentState } from "../../src/gen/payments/v1/payment_pb.ts";
import { PayoutState } from "../../src/gen/payments/v1/payout_pb.ts";
import type { IntentStore } from "../../src/ledger/intents.ts";
import { createMemoryLedger } from "../../src/ledger/memory.ts";
import { Drain } from "../../src/live/drain.ts";
import { payment } from "../ledger/entries.ts";

const about = { account: "default", kind: EventKind.PAYMENT, externalId: "order-1" };
const theAnswer = { name: "the answer itself" };
const caller = { name: "test", account: about.account, scopes: new Set<never>() };
const nothing = { state: PaymentState.UNSPECIFIED, payoutState: PayoutState.UNSPECIFIED };

interface Of {
  readonly until: WaitUntil;
  readonly log: Context["log"];
}

/** An answer whose store reads with `known`, for a caller who waits for `until` or does not. */
function answered(
  made: Made<typeof theAnswer>,
  known: IntentStore["known"],
  { until = WaitUntil.UNSPECIFIED, log, ...given }: Partial<Call & Of> = {},
) {
  const context = {
    ...{ log, intents: { known }, waits: new Drain(), waitLimits: createStreamLimits(10) },
  } as unknown as Context;
  const { signal } = new AbortController();
  const call: Call = { caller, requestId: "r", signal, ...given };
  return moneyAnswer(context, call, about, until, Promise.resolve(made));
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
  const duplicate = { outcome: "duplicate", conflict: false } as const;
  for (const error of [new GatewayError("UNAVAILABLE", "away"), new Error("a mistake of ours")]) {
    const away = () => Promise.reject(error);
    assert.deepEqual(await answered({ answer: theAnswer }, away), {
      ...{ answer: theAnswer, ...nothing, cursor: "" },
    });
    for (const appended of [undefined, duplicate]) {
      const { state, cursor } = await answered({ answer: theAnswer, entry, appended }, away);
      assert.deepEqual([state, cursor], [PaymentState.PAID, ""]);
    }
  }
});

test("a wait that ends without news does not tell the failure of an earlier attempt", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_000_000 });
  const log = createMemoryLedger({ retentionMs: 3_600_000, firstLookMs: 60_000, giveUpMs: 60_000 });
  const confirm = (status: string) => payment({ operation: "confirm", status, paymentId: "p-1" });
  // A payment of unknown outcome, of which one confirmation has failed and another is pending.
  const method = "CreatePayment";
  const { kind, externalId } = about;
  const begun = await log.begin(about.account, { id: "c", method, kind, externalId, leaseMs: 9 });
  assert.ok(begun.kind === "started");
  await log.end(about.account, begun.intent, { state: "unknown" });
  await log.append(about.account, confirm("failure"));
  const entry = confirm("pending");
  await log.append(about.account, entry);
  // The store's answer to the first try was lost.
  const appended = { outcome: "duplicate", conflict: false } as const;
  const run = async (later: (() => Promise<unknown>) | undefined) => {
    const answer = answered({ answer: theAnswer, entry, appended }, log.known.bind(log), {
      ...{ log, until: WaitUntil.SETTLED },
    });
    await later?.();
    for (let i = 0; i < 5; i++) await new Promise(setImmediate);
    t.mock.timers.tick(30_000);
    return (await answer).answer;
  };
  assert.deepEqual(await run(undefined), theAnswer);
  const isPaid = await run(() => log.append(about.account, confirm("success")));
  assert.notDeepEqual(isPaid, theAnswer, "what came later is told");
});

test("an answer that is not in the log is not waited for", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_000_000 });
  const log = createMemoryLedger({ retentionMs: 3_600_000, firstLookMs: 60_000, giveUpMs: 60_000 });
  await log.append(about.account, payment({ status: "pending" }));
  const entry = payment({ status: "pending" });
  const waits: string[] = [];
  const run = async (appended: Made<object>["appended"]) => {
    const answer = answered({ answer: theAnswer, entry, appended }, log.known.bind(log), {
      ...{ log, until: WaitUntil.SETTLED, onWait: () => void waits.push("waits") },
    });
    for (let i = 0; i < 5; i++) await new Promise(setImmediate);
    t.mock.timers.tick(30_000);
    return answer;
  };
  assert.deepEqual((await run(undefined)).answer, theAnswer);
  assert.deepEqual(waits, []);
  await run({ outcome: "duplicate", conflict: false });
  assert.deepEqual(waits, ["waits"], "the control");
});
