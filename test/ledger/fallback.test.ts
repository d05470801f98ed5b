import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { dueIndex } from "../../src/ledger/calls.ts";
import { markOfRefusal } from "../../src/ledger/evidence.ts";
import { LedgerWithFallback } from "../../src/ledger/fallback.ts";
import { outcomeFlags } from "../../src/ledger/open-calls.ts";
import { beginOwn, endOwn, ProcessCalls } from "../../src/ledger/process-calls.ts";
import { keyRecordKey, recordKey } from "../../src/ledger/record.ts";
import { storeAway } from "../../src/redis/ask.ts";
import type { AccountKernel, Commit, Kernel } from "../../src/stores/kernel.ts";
import { createMemoryKernel } from "../../src/stores/memory/kernel.ts";
import { closing } from "../of-suite.ts";
import { openCalls } from "../open-calls.ts";
import { overridden } from "../overridden.ts";
import { valuesOf } from "../values-of.ts";
import { payment } from "./entries.ts";
import { callBegun, callLost, newCall } from "./new-call.ts";

const account = "shop";
const giveUpMs = 3_600_000;

/**
 * Two replicas with one store, which takes no commits of `refused`, and is away then or is not. `reading`
 * has what happens before the store reads, and before its answer arrives.
 */
function replicas(t: TestContext, { isAway = false, readsGoOn = false } = {}) {
  const refused = new Set<string>();
  const reading = { begins: async () => {}, ends: async () => {} };
  const times = { retentionMs: 86_400_000, firstLookMs: 60_000, giveUpMs };
  const store = createMemoryKernel(times);
  const commit = (of: AccountKernel) => (one: Commit) =>
    one.records.some(({ key }) => refused.has(key))
      ? Promise.reject(storeAway(new Error("refused")))
      : of.commit(one);
  const read =
    (of: AccountKernel) =>
    async (...asked: Parameters<AccountKernel["read"]>) => {
      await reading.begins();
      const found = await of.read(...asked);
      await reading.ends();
      return found;
    };
  const kernel = overridden<Kernel>(store, {
    account(name) {
      const of = store.account(name);
      return overridden(of, { commit: commit(of), read: read(of) });
    },
  });
  const replica = () =>
    closing(
      t,
      new LedgerWithFallback({
        ...{ ...times, kernel, keyringOf: undefined },
        ...{ isAway: () => isAway, readsGoOn, answerMs: 1_000 },
      }),
    );
  return { kernel, refused, reading, one: replica(), other: replica() };
}

/** Puts a text in place of that of a record. @returns what it was */
async function put(kernel: Kernel, key: string, text: string, indexes: Commit["indexes"] = []) {
  const store = kernel.account(account);
  const [record] = (await store.read([key])).records;
  const parts = { expected: new Map(), attachments: new Map(), flags: new Map() };
  const change = { key, was: record?.version ?? "", text, ...parts, keepMs: giveUpMs };
  await store.commit({ token: newCall().id, events: [], indexes, records: [change] });
  return record?.text ?? "";
}

test("a call that another replica has settled is open no more, whatever else waits to be written", async (t) => {
  const { refused, one, other } = replicas(t);
  const lost = await callLost(one, account, { externalId: "order-1" });
  const look = { checks: 3, notFound: 3, inMs: 1_000, neverArrived: true };
  await other.looked(account, lost, look);

  const waiting = await callBegun(one, account, { externalId: "order-2" });
  refused.add(recordKey(EventKind.PAYMENT, "order-2"));
  const pending = { state: "pending", subjectId: "pay-2", key: "keep" } as const;
  const answer = payment({ externalId: "order-2", paymentId: "pay-2", source: "response" });
  await one.end(account, waiting, pending, answer);
  assert.deepEqual(await openCalls(one, account, "order-1"), []);
  const [still] = await openCalls(one, account, "order-2");
  assert.equal(still?.state, "pending");
  refused.clear();
});

test("a call of a process that is gone stays open while its loss cannot be stored", async (t) => {
  const { refused, one, other } = replicas(t, { isAway: true, readsGoOn: true });
  const lost = await callBegun(other, account);
  refused.add(recordKey(EventKind.PAYMENT, lost.externalId));
  await assert.rejects(one.lose(account, lost), { code: "UNAVAILABLE" });
  const known = await one.known(account, EventKind.PAYMENT, lost.externalId);
  assert.equal(outcomeFlags(known).outcomeUnknown, true);
  const next = await one.begin(account, newCall({ externalId: lost.externalId }));
  assert.equal(next.kind, "inFlight");
  refused.clear();
});

for (const isAway of [false, true]) {
  const when = isAway ? "while the store has neither" : "while its loss is not stored";
  test(`a lost call is not over by the failure of the call before it, ${when}`, async (t) => {
    const { refused, one, other } = replicas(t, { isAway });
    const key = recordKey(EventKind.PAYMENT, "order");
    const fail = () => other.append(account, payment({ externalId: "order", status: "failure" }));
    if (isAway) refused.add(key);
    const declined = await callBegun(one, account);
    const mark = markOfRefusal("CreatePayment", undefined);
    await one.end(account, declined, { state: "closed", mark, key: "free" });
    const lost = await callBegun(one, account);
    if (!isAway) await fail();
    refused.add(key);
    await one.end(account, lost, { state: "unknown" });
    refused.clear();
    if (isAway) await fail();
    const known = await one.known(account, EventKind.PAYMENT, "order");
    assert.equal(outcomeFlags(known).outcomeUnknown, true);
  });
}

for (const how of ["before, without the store", "meanwhile"]) {
  test(`a call that began ${how}, and is answered while the store is read, is not missing`, async (t) => {
    const { refused, reading, one } = replicas(t, { isAway: true });
    const key = recordKey(EventKind.PAYMENT, "order");
    const begin = () => callBegun(one, account);
    const answer = payment({ externalId: "order", status: "success", source: "response" });
    const isAlone = how !== "meanwhile";
    if (isAlone) refused.add(key);
    let call = isAlone ? await begin() : undefined;
    reading.begins = async () => {
      call ??= await begin();
    };
    reading.ends = async () => {
      if (isAlone) refused.clear();
      else refused.add(key);
      assert.ok(call);
      await one.end(account, call, { state: "closed", key: "keep" }, answer);
    };
    const known = await one.known(account, EventKind.PAYMENT, "order");
    assert.equal(outcomeFlags(known).outcomeUnknown, true);
    assert.deepEqual(known.operations, [], "the control: the answer came too late for this read");
    refused.clear();
  });
}

for (const how of ["given up", "settled"] as const) {
  test(`a call that was ${how} bars no other one while the store is away`, async (t) => {
    const { refused, one } = replicas(t, { isAway: true });
    const lost = await callLost(one, account);
    const about = { externalId: lost.externalId, status: "failure" } as const;
    if (how === "given up") await one.giveUp(account, lost);
    else await one.append(account, payment(about));
    refused.add(recordKey(EventKind.PAYMENT, lost.externalId));
    assert.equal((await one.begin(account, newCall())).kind, "started");
    assert.equal((await one.begin(account, newCall())).kind, "inFlight", "the control");
    refused.clear();
  });
}

test("a record of a key that cannot be read is named, not that of its payment", async (t) => {
  const { one, kernel } = replicas(t);
  await put(kernel, keyRecordKey("digest"), "{");
  const key = { digest: "digest", fingerprints: ["f"] };
  const begun = one.begin(account, newCall({ key }));
  await assert.rejects(begun, { code: "INTERNAL", key: keyRecordKey("digest") });
});

test("records that cannot be read keep no other call from being looked up", async (t) => {
  const { one, kernel } = replicas(t);
  for (let n = 0; n < 20; n++) {
    const key = recordKey(EventKind.PAYMENT, `damaged-${n}`);
    await put(kernel, key, "{", [{ index: dueIndex, member: `call-${n} ${key}`, score: n }]);
  }
  const lost = await callLost(one, account);
  await one.looked(account, lost, { checks: 1, notFound: 0, inMs: 0 });
  assert.deepEqual(valuesOf(await one.due(account, 10), "id"), [lost.id]);
});

test("what an index has of a call goes once its record is gone", async (t) => {
  const { kernel, one } = replicas(t);
  await one.begin(account, newCall());
  await put(kernel, recordKey(EventKind.PAYMENT, "order"), "");
  const left = async () => (await kernel.account(account).range([dueIndex], { limit: 9 })).length;
  assert.equal(await left(), 1);
  assert.deepEqual(await one.unsettled(account), []);
  assert.equal(await left(), 0);
});

test("a process forgets calls that hold no lock any more, whoever settled them", (t) => {
  t.mock.timers.enable({ apis: ["Date"] });
  const ages = { retentionMs: 1, firstLookMs: 1, giveUpMs };
  const own = new ProcessCalls(ages);
  const begin = (externalId: string) => {
    const given = newCall({ externalId });
    own.change(account, given, (calls) => beginOwn(calls, given, Date.now(), ages));
    return given;
  };
  const lose = (externalId: string) => {
    const given = begin(externalId);
    own.change(account, given, (calls) => endOwn(calls, given.id, { state: "unknown" }));
  };
  const openOf = (externalId: string) =>
    own.of(account, { kind: EventKind.PAYMENT, externalId }).calls.length;
  lose("lost");
  begin("running");
  t.mock.timers.tick(giveUpMs - 1);
  lose("lost later");
  assert.deepEqual(["lost", "running"].map(openOf), [1, 1]);
  t.mock.timers.tick(1);
  begin("next");
  assert.deepEqual(["lost", "running", "lost later"].map(openOf), [0, 1, 1]);
});

test("a call whose record cannot be read any more holds up no other one, and is looked up", async (t) => {
  const { one, kernel } = replicas(t);
  const lost = await callBegun(one, account, { leaseMs: 0 });
  const key = recordKey(EventKind.PAYMENT, lost.externalId);
  const sound = await put(kernel, key, "{");
  await one.end(account, lost, { state: "closed", key: "free" });
  await callBegun(one, account, { externalId: "another" });
  await put(kernel, key, sound);
  assert.deepEqual(valuesOf(await one.due(account, 10), "id"), [lost.id]);
});
