import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Event, EventKind } from "../../../src/gen/payments/v1/event_pb.ts";
import { PaymentStateSchema } from "../../../src/gen/payments/v1/payment_pb.ts";
import { Ledger } from "../../../src/ledger/ledger.ts";
import type { Topic } from "../../../src/ledger/log.ts";
import { createMemoryKernel } from "../../../src/stores/memory/kernel.ts";
import { valuesOf } from "../../values-of.ts";
import { createMemoryLedger } from "../create.ts";
import { currentStep, cursors, payment, snapshotOf, steps, take } from "../entries.ts";
import { letter, lettersOf } from "../letters.ts";
import { callBegun, callLost } from "../new-call.ts";
import { isExpired, isFull } from "../refusals.ts";

const day = 86_400_000;

describe("memory log", () => {
  const everything: Topic = undefined;
  const signal = new AbortController().signal;

  function fixture({ maxEvents = 1_000, maxBytes = 2 ** 30 } = {}) {
    let now = Date.parse("2026-11-20T10:00:00Z");
    const log = createMemoryLedger({ retentionMs: 7 * day, maxEvents, maxBytes, now: () => now });
    return {
      log,
      pass(ms: number) {
        now += ms;
      },
    };
  }
  const kept = async (log: Ledger): Promise<string[]> =>
    steps(await log.history("shop", EventKind.PAYMENT, "order-1", 1_000));
  it("is not durable", () => {
    assert.equal(fixture().log.durable, false);
  });

  it("keeps an event for the whole retention and not longer", async () => {
    const { log, pass } = fixture();
    await log.append("shop", payment());
    pass(7 * day);
    assert.deepEqual(await kept(log), ["payment:pending"]);
    pass(1);
    assert.deepEqual(await kept(log), []);
  });

  it("recognizes a repeat for as long as it knows the payment", async () => {
    const { log, pass } = fixture();
    await log.append("shop", payment({ status: "pending" }));
    await log.append("shop", payment({ status: "success" }));
    pass(14 * day);
    const repeat = await log.append("shop", payment({ status: "pending" }));
    assert.equal(repeat.outcome, "duplicate");
    assert.equal(await currentStep(log), "payment:success");
  });

  it("forgets a state two retentions after its last event", async () => {
    const { log, pass } = fixture();
    await log.append("shop", payment({ status: "pending" }));
    pass(day);
    await log.append("shop", payment({ status: "success" }));
    pass(14 * day);
    assert.equal(await currentStep(log), "payment:success");
    pass(1);
    assert.equal(await currentStep(log), undefined);
    await log.append("shop", payment({ status: "success" }));
    pass(14 * day + 1);
    await log.append("shop", payment({ status: "pending" }));
    assert.equal(await currentStep(log), "payment:pending", "also if nobody asked in between");
  });

  it("forgets no state while a call is open, and so not that what it makes is a hold", async () => {
    const { log, pass } = fixture();
    const shown = async () => PaymentStateSchema.value[(await append("success")).event?.state ?? 0];
    const append = (status: string, paymentId = "pay-1") =>
      log.append("shop", payment({ paymentId, status }));
    await append("failure", "pay-0");
    pass(14 * day - 1);
    await callBegun(log, "shop", { externalId: "order-1", hold: true });
    pass(1_000);
    await append("pending");
    // The call that looks for its end is open, and its looks keep the record.
    const [pending] = (await log.known("shop", EventKind.PAYMENT, "order-1")).calls;
    assert.ok(pending);
    for (let looks = 0; looks < 3; looks++) {
      pass(7 * day);
      await log.looked("shop", pending, { checks: looks, notFound: 0, inMs: day });
    }
    assert.equal(await currentStep(log), "payment:pending");
    assert.equal((await shown())?.localName, "AUTHORIZED");
  });

  it("keeps the newest events of an account up to its bound", async () => {
    const { log } = fixture({ maxEvents: 10 });
    const made: Event[] = [];
    for (let i = 0; i < 25; i++) {
      const { event } = await log.append("shop", payment({ paymentId: `p-${i}` }));
      assert(event);
      made.push(event);
    }
    await log.append("other", payment());
    const events = await log.read("shop", everything, "earliest", { signal });
    assert.deepEqual(cursors(await take(events, 10)), cursors(made.slice(-10)));
    assert.equal((await kept(log)).length, 10);

    const readFrom = (at: number) =>
      log.read("shop", everything, made[at]?.cursor ?? "", { signal });
    await assert.rejects(readFrom(13), isExpired);
    // All events after the newest dropped one are still there.
    const behind = await take(await readFrom(14), 10);
    assert.deepEqual(cursors(behind), cursors(made.slice(-10)));
  });

  it("keeps the states that were changed last, up to its bound", async () => {
    const { log } = fixture({ maxEvents: 3 });
    const touch = (n: number, status: "pending" | "success") =>
      log.append("shop", payment({ externalId: `order-${n}`, paymentId: `p-${n}`, status }));
    for (const n of [1, 2, 3]) await touch(n, "pending");
    await touch(1, "success");
    await touch(4, "pending");
    const known = [];
    for (const n of [1, 2, 3, 4]) {
      known.push((await snapshotOf(log, "shop", EventKind.PAYMENT, `order-${n}`)) !== undefined);
    }
    assert.deepEqual(known, [true, false, true, true]);
  });

  it("keeps no more of them beside what is never dropped: dead letters, and calls without an end", async () => {
    const { log, pass } = fixture({ maxEvents: 3 });
    for (let n = 0; n < 10; n++) {
      await log.letters.addDeadLetter("shop", letter(`letter-${n}`));
      await callLost(log, "shop", { externalId: `lost-${n}` });
    }
    const known = async (name: string) => {
      const all = [];
      for (let n = 0; n < 10; n++) {
        all.push(await log.known("shop", EventKind.PAYMENT, `${name}-${n}`));
      }
      return all.filter(({ firstSeen }) => firstSeen !== undefined).length;
    };
    for (let n = 0; n < 10; n++) {
      await log.append("shop", payment({ externalId: `order-${n}`, paymentId: `p-${n}` }));
    }
    assert.deepEqual([await known("order"), await known("lost")], [3, 10]);
    assert.equal(await log.letters.countDeadLetters("shop"), 10);
    pass(365 * day);
    assert.equal(await known("lost"), 0);
    const selection = { kind: EventKind.PAYMENT, states: [], needsOperator: undefined };
    for (let n = 0; n < 25; n++) await log.append("shop", payment());
    const listed = await log.list("shop", { ...selection, newestFirst: false }, 100);
    assert.deepEqual(valuesOf(listed, "externalId"), ["order-1"]);
    assert.equal((await lettersOf(log, "shop")).length, 10);
  });

  it("keeps the newest that its memory has room for, an equal share of each account", async () => {
    const { log } = fixture({ maxBytes: 100_000 });
    const countOf = async (account: string) => {
      const known = [];
      for (let n = 0; n < 100; n++) {
        known.push(await snapshotOf(log, account, EventKind.PAYMENT, `order-${n}`));
      }
      const events = await log.history(account, EventKind.PAYMENT, "order-99", 10);
      assert.ok(known[99] && events.length === 1, "the newest is kept");
      return known.filter(Boolean).length;
    };
    const fill = async (account: string) => {
      for (let n = 0; n < 100; n++) {
        await log.append(account, payment({ externalId: `order-${n}`, paymentId: `p-${n}` }));
      }
    };
    await fill("shop");
    const alone = await countOf("shop");
    assert.ok(alone > 20 && alone < 50, `${alone}`);
    await fill("other");
    await fill("shop");
    for (const account of ["shop", "other"]) {
      const shared = await countOf(account);
      assert.ok(shared > 10 && shared <= Math.ceil(alone / 2), `${account}: ${shared} of ${alone}`);
    }
  });

  it("has room again for what a payment that went had taken", async () => {
    const { log, pass } = fixture({ maxBytes: 100_000 });
    for (let round = 0; round < 20; round++) {
      for (let n = 0; n < 20; n++) {
        await log.append("shop", payment({ externalId: `order-${n}`, paymentId: `p-${round}` }));
      }
      pass(15 * day);
      await log.append("shop", payment({ externalId: `other-${round}` }));
      const newest = await snapshotOf(log, "shop", EventKind.PAYMENT, `other-${round}`);
      assert.ok(newest, `round ${round}`);
      pass(15 * day);
    }
    for (let n = 0; n < 20; n++) await log.append("shop", payment({ externalId: `order-${n}` }));
    for (let n = 0; n < 60; n++) {
      await log.append("shop", payment({ externalId: "order-0", statusCode: `${n}` }));
    }
    for (let n = 0; n < 20; n++) {
      assert.ok(await snapshotOf(log, "shop", EventKind.PAYMENT, `order-${n}`), `order-${n}`);
    }
  });

  it("keeps its cursors in order when the clock is set back", async () => {
    const { log, pass } = fixture();
    const made = [];
    for (let i = 0; i < 10; i++) {
      pass(i === 5 ? -3_600_000 : 1);
      const { event } = await log.append("shop", payment({ paymentId: `p-${i}` }));
      made.push(event?.cursor);
    }
    assert.deepEqual([...made].sort(), made);
    assert.equal(new Set(made).size, 10);
  });

  it("has room for 64 MiB of dead letters", async () => {
    const { letters } = fixture().log;
    const base64Of = (mebi: number) => "x".repeat((mebi * 1024 * 1024 * 4) / 3);
    await letters.addDeadLetter("shop", letter("large", base64Of(60)));
    await assert.rejects(letters.addDeadLetter("shop", letter("more", base64Of(4.5))), isFull);
    await letters.addDeadLetter("shop", letter("small"));
    await letters.removeDeadLetter("shop", "large");
    await letters.addDeadLetter("shop", letter("fits now", base64Of(60)));
  });

  it("refuses dead letters beyond 10,000, of all processes together, and drops none", async () => {
    const times = { retentionMs: day, firstLookMs: day, giveUpMs: day };
    const kernel = createMemoryKernel(times);
    const processes = [0, 1].map(() => new Ledger({ ...times, kernel, keyringOf: undefined }));
    const add = (n: number) => processes[n % 2]?.letters.addDeadLetter("shop", letter(`l-${n}`));
    const max = 10_000;
    for (let n = 0; n < max - 15; n++) await add(n);
    const last = await Promise.allSettled(Array.from({ length: 30 }, (_, n) => add(max - 15 + n)));
    const refused = last.flatMap((one) => (one.status === "rejected" ? [isFull(one.reason)] : []));
    assert.deepEqual(refused, Array(15).fill(true));
    await add(0);
    for (const { letters } of processes) assert.equal(await letters.countDeadLetters("shop"), max);
    for (const is of [true, false]) {
      assert.equal(await processes[0]?.letters.removeDeadLetter("shop", "l-0"), is);
    }
    await add(max + 100);
    await assert.rejects(async () => add(max + 101), isFull);
  });
});
