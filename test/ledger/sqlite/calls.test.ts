import assert from "node:assert/strict";
import type { DatabaseSync } from "node:sqlite";
import { describe, it, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { CallOutcome, EventKind } from "../../../src/gen/payments/v1/event_pb.ts";
import { outcomeFlags } from "../../../src/ledger/open-calls.ts";
import type { Committed } from "../../../src/stores/kernel.ts";
import type { StoreThread } from "../../../src/stores/sqlite/store-thread.ts";
import { closing } from "../../of-suite.ts";
import { openCalls } from "../../open-calls.ts";
import { overridden } from "../../overridden.ts";
import { directory, inDatabase } from "../../stores/sqlite/directories.ts";
import { valuesOf } from "../../values-of.ts";
import { payment } from "../entries.ts";
import { callBegun, callLost, newCall } from "../new-call.ts";
import { createSqliteCalls, openIntents, openLog } from "./rig.ts";

describe("intents in SQLite", () => {
  const account = "default";
  const keyed = (digest: string, externalId = digest) =>
    newCall({ externalId, key: { digest, fingerprints: ["f"] } });

  it("takes a call for lost that its last process was making, and keeps its key and lock", async (t) => {
    const path = directory(t);
    const before = await openIntents(path);
    const { given: _, ...running } = await callBegun(before.store, account, keyed("key-1"));
    await before.close();
    const { store } = closing(t, await openIntents(path));
    const [lost] = await openCalls(store, account, "key-1");
    assert.deepEqual(lost, { ...running, state: "unknown", dueMs: lost?.dueMs });
    assert.deepEqual(await store.due(account, 10), [lost]);
    assert.equal((await store.begin(account, keyed("key-1"))).kind, "keyUnknown");
    assert.equal((await store.begin(account, newCall({ externalId: "key-1" }))).kind, "inFlight");
  });

  it("does so by a clock that was set back, too", async (t) => {
    const path = directory(t);
    const before = await openIntents(path);
    await callBegun(before.store, account, keyed("key-1"));
    await before.close();
    const now = () => Date.now() - 3_600_000;
    const { store } = closing(t, await openIntents(path, { now }));
    const [lost] = await openCalls(store, account, "key-1");
    assert.deepEqual(await store.due(account, 10), [lost]);
    assert.equal((await store.begin(account, keyed("key-1"))).kind, "keyUnknown");
  });

  it("looks at calls whose start is ahead of a clock that was set back", async (t) => {
    const path = directory(t);
    const before = await openIntents(path, { now: () => Date.now() + 30 * 86_400_000 });
    const lost = await callLost(before.store, account);
    await before.close();
    const { store } = closing(t, await openIntents(path));
    const [due, ...others] = await store.due(account, 10);
    assert.deepEqual([due?.id, due?.state, others], [lost.id, "unknown", []]);
  });

  it("writes nothing at its start but the leases of calls that ran, and these together", async (t) => {
    const path = directory(t);
    const before = await openIntents(path);
    const names = Array.from({ length: 20 }, (_, n) => `order-${n}`);
    await Promise.all(
      names.map(async (name) => {
        const answered = await callBegun(before.store, account, keyed(`answered-${name}`));
        const key = Buffer.from("answer");
        await before.store.end(account, answered, { state: "pending", subjectId: name, key });
        await callBegun(before.store, account, keyed(name));
      }),
    );
    await before.close();
    const { thread } = closing(t, await openLog(path));
    const commits = { asked: 0, made: 0, underWay: 0, most: 0 };
    const counted = overridden<StoreThread>(thread, {
      async run(operation, args, map) {
        if (operation !== "commit") return thread.run(operation, args, map);
        commits.asked++;
        commits.most = Math.max(commits.most, ++commits.underWay);
        const done = await thread.run(operation, args, map);
        if ((done as unknown as Committed).kind === "committed") commits.made++;
        commits.underWay--;
        return done;
      },
    });
    await createSqliteCalls(counted).stored.endLeases(account);
    assert.deepEqual(commits, { asked: 40, made: 20, underWay: 0, most: 20 });
  });

  it("settles no call by an attempt before it, though the clock was set back in between", async (t) => {
    let ahead = 3_600_000;
    const now = () => Date.now() + ahead;
    const { store } = closing(t, await openIntents(directory(t), { now }));
    const failed = { externalId: "order", status: "failure" };
    await store.append(account, payment({ ...failed, paymentId: "another-client's" }));
    ahead = 0;
    await callLost(store, account);
    const states = async () => (await openCalls(store, account)).map(({ state }) => state);
    assert.deepEqual(await states(), ["unknown"]);
    const shown = outcomeFlags(await store.known(account, EventKind.PAYMENT, "order"));
    assert.equal(shown.outcomeUnknown, true, "callers are told so, too");
    assert.equal((await store.begin(account, newCall())).kind, "inFlight");
    await store.append(account, payment({ ...failed, paymentId: "own" }));
    assert.deepEqual(await states(), []);
  });

  it("deletes expired calls, locks and keys", async (t) => {
    const path = directory(t);
    let ahead = 0;
    const now = () => Date.now() + ahead;
    const before = await openIntents(path, { now });
    const intent = await callLost(before.store, account, keyed("key-1"));
    await before.store.giveUp(account, intent);
    await before.close();
    // Past the time at which it is given up: it stays for the operator.
    ahead = 2 * 86_400_000;
    const operators = await openIntents(path, { now });
    const [shown] = await operators.store.unsettled(account);
    assert.deepEqual([shown?.id, shown?.needsOperator], [intent.id, true]);
    await operators.close();
    ahead = 30 * 86_400_000;
    const { store, thread } = closing(t, await openIntents(path, { now }));
    while (await thread.run("sweep", [now(), 7 * 86_400_000]));
    const left = (database: DatabaseSync) =>
      ["records", "parts"].map((table) => database.prepare(`SELECT * FROM ${table}`).all());
    assert.deepEqual(inDatabase(path, left), [[], []]);
    await callBegun(store, account, keyed("key-1"));
  });

  /** A store whose writes fail while `full` is set. */
  async function onFullDisk(t: TestContext, path: string) {
    const { thread } = closing(t, await openIntents(path));
    const disk = { full: false, refused: 0 };
    const failing: Pick<StoreThread, "run"> = {
      run(operation, args, map) {
        const isRefused = disk.full && operation === "commit";
        if (isRefused) disk.refused++;
        return thread.run(isRefused ? "none" : operation, args, map);
      },
    };
    const { store, stored: ledger } = createSqliteCalls(failing);
    return { disk, intents: closing(t, store), ledger, thread };
  }

  it("refuses calls with a key while the disk is full, permits others, and writes these later", async (t) => {
    const path = directory(t);
    const { disk, intents, ledger } = await onFullDisk(t, path);
    const first = await callBegun(intents, account, keyed("key-1"));
    disk.full = true;
    await assert.rejects(intents.begin(account, keyed("key-2")), { code: "UNAVAILABLE" });
    const keyless = await callBegun(intents, account, { externalId: "keyless" });
    assert.equal(
      (await intents.begin(account, newCall({ externalId: "keyless" }))).kind,
      "inFlight",
    );
    await intents.end(account, first, { state: "closed", key: Buffer.from("answer") });
    await intents.end(account, keyless, { state: "unknown" });
    // What is tried again in vain is kept too.
    const { refused } = disk;
    while (disk.refused < refused + 2) await delay(20);
    disk.full = false;
    const states = async (externalId: string) =>
      (await openCalls(ledger, account, externalId)).map(({ state }) => state);
    while ((await states("keyless"))[0] !== "unknown") await delay(20);
    while ((await states("key-1")).length > 0) await delay(20);
    const answer = Buffer.from("answer");
    assert.deepEqual(await ledger.begin(account, keyed("key-1")), { kind: "keyAnswered", answer });
    await callBegun(intents, account, keyed("key-2"));
  });

  it("writes what waits for the disk when it is closed", async (t) => {
    const path = directory(t);
    const { disk, intents, ledger } = await onFullDisk(t, path);
    disk.full = true;
    const keyless = await callBegun(intents, account);
    disk.full = false;
    await intents.close();
    const calls = await openCalls(ledger, account);
    assert.deepEqual(valuesOf(calls, "id"), [keyless.id]);
  });

  it("bars a call by one that an earlier process left open, while the disk is full", async (t) => {
    const path = directory(t);
    const { store, close } = await openIntents(path);
    const left = await callLost(store, account);
    await close();
    const { disk, intents, ledger } = await onFullDisk(t, path);
    disk.full = true;
    assert.equal((await intents.begin(account, newCall())).kind, "inFlight");
    await callBegun(intents, account, { externalId: "another" });
    const hold = newCall({ externalId: "hold", hold: true });
    await assert.rejects(intents.begin(account, hold), { code: "UNAVAILABLE" });
    // Only the store says whether it is still open.
    disk.full = false;
    await ledger.end(account, left, { state: "closed", key: "free" });
    disk.full = true;
    await callBegun(intents, account);
  });

  it("knows its own call, which barred another one, when the full disk does not take the answer", async (t) => {
    const { disk, intents } = await onFullDisk(t, directory(t));
    const own = await callBegun(intents, account);
    disk.full = true;
    assert.equal((await intents.begin(account, newCall())).kind, "inFlight");
    const pending = { state: "pending", subjectId: "p1", key: "keep" } as const;
    const answer = payment({ externalId: "order", paymentId: "p1", source: "response" });
    await intents.end(account, own, pending, answer);
    const [open] = await openCalls(intents, account);
    assert.deepEqual([open?.id, open?.state, open?.subjectId], [own.id, "pending", "p1"]);
    disk.full = false;
  });

  it("publishes the late ending of a call that was stored as unknown, with the ending", async (t) => {
    const { disk, intents, ledger } = await onFullDisk(t, directory(t));
    const stored = () => openCalls(ledger, account, "late");
    const told = async () =>
      (await ledger.history(account, EventKind.PAYMENT, "late", 10)).map(
        (event) => event.callOutcome,
      );
    const late = await callLost(intents, account, { externalId: "late" });
    disk.full = true;
    await intents.end(account, late, { state: "closed", key: "free" });
    assert.deepEqual(await openCalls(intents, account, "late"), []);
    assert.deepEqual([(await stored()).length, await told()], [1, [CallOutcome.UNKNOWN]]);
    disk.full = false;
    while ((await stored()).length > 0) await delay(20);
    assert.deepEqual(await told(), [CallOutcome.UNKNOWN, CallOutcome.NOT_DONE]);
  });
});
