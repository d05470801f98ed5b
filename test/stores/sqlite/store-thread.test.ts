import assert from "node:assert/strict";
import { copyFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it, type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { GatewayError } from "../../../src/errors.ts";
import { open as openKernel } from "../../../src/stores/sqlite/operations.ts";
import { migrate } from "../../../src/stores/sqlite/schema.ts";
import { openStoreThread } from "../../../src/stores/sqlite/store-thread.ts";
import type { ThreadData } from "../../../src/stores/sqlite/worker.ts";
import { createWorker } from "../../../src/stores/sqlite/worker.ts";
import { overridden } from "../../overridden.ts";
import { freshDirectory } from "./directories.ts";

const program = new URL("./test-worker.ts", import.meta.url);
const startWorker = (workerData: ThreadData) => new Worker(program, { workerData });

describe("the store's thread", () => {
  async function open(t: TestContext) {
    const { path, remove } = freshDirectory();
    const states: (string | undefined)[] = [];
    const thread = await openStoreThread({
      ...{ directory: path, startWorker },
      onStateChange: (trouble) => states.push(trouble),
    });
    t.after(async () => {
      await thread.close();
      remove();
    });
    const run = <T>(operation: string, ...args: unknown[]) => thread.run<T>(operation, args);
    return { path, thread, run, states };
  }

  const isAway = (reason: RegExp) => (error: unknown) => {
    assert(error instanceof GatewayError);
    assert.equal(error.code, "UNAVAILABLE");
    assert.equal(error.details.reason, "STORE_UNAVAILABLE");
    assert.match(String((error.cause as Error).message), reason);
    return true;
  };

  it("runs the writes that wait in one transaction, and answers in order", async (t) => {
    const { thread, run } = await open(t);
    const gate = new Int32Array(new SharedArrayBuffer(8));
    const held = run("hold", gate);
    await Atomics.waitAsync(gate, 1, 0).value;
    const results: string[] = [];
    const all = ["a", "b", "c"].map((text) => thread.run("add", [text], () => results.push(text)));
    const inTransaction = run<boolean>("inTransaction");
    Atomics.store(gate, 0, 1);
    Atomics.notify(gate, 0);
    await Promise.all([held, ...all]);
    assert.deepEqual(results, ["a", "b", "c"]);
    assert.equal(await inTransaction, true, "a read behind them sees what they wrote");
    assert.deepEqual(await run("all"), ["a", "b", "c"]);
    assert.equal(await run("inTransaction"), false, "reads alone need none");
  });

  it("rolls back an operation that fails, and no other", async (t) => {
    const { run } = await open(t);
    await run("add", "b");
    const broken = run("addBoth", "a", "b");
    const whole = run("addBoth", "c", "d");
    await assert.rejects(broken, isAway(/UNIQUE constraint failed/));
    await whole;
    assert.deepEqual(await run("all"), ["b", "c", "d"]);
  });

  it("rejects only what has ended its transaction, and stores the writes beside it", async (t) => {
    const { run } = await open(t);
    const gate = new Int32Array(new SharedArrayBuffer(8));
    // A full disk ends the whole transaction.
    const stored: string[] = [];
    for (const ending of ["endTransaction", "readEndingTransaction"]) {
      Atomics.store(gate, 0, 0);
      Atomics.store(gate, 1, 0);
      const held = run("hold", gate);
      await Atomics.waitAsync(gate, 1, 0).value;
      const before = run("add", `before ${ending}`);
      const broken = run(ending);
      const behind = run("add", `behind ${ending}`);
      stored.push(`before ${ending}`, `behind ${ending}`);
      const settled = Promise.all([held, before, behind]);
      Atomics.store(gate, 0, 1);
      Atomics.notify(gate, 0);
      await assert.rejects(broken, isAway(/disk is full/));
      await settled;
      assert.deepEqual(await run("all"), stored, ending);
    }
  });

  it("is not taken to work because it can still be read", async (t) => {
    const { thread, run, states } = await open(t);
    await run("refuseWrites", true);
    await assert.rejects(run("add", "a"), isAway(/readonly/));
    const { trouble } = thread;
    assert.deepEqual(await run("all"), []);
    assert.ok(trouble);
    assert.deepEqual([thread.trouble, states], [trouble, [trouble]]);
    await run("refuseWrites", false);
    while (thread.trouble !== undefined) await delay(20);
    assert.deepEqual(states, [trouble, undefined]);
  });

  it("takes no writes once its file was deleted or replaced, since they would be lost", async (t) => {
    const { path, thread, run } = await open(t);
    await run("add", "before");
    const [file, aside] = [join(path, "gateway.sqlite"), join(path, "aside")];
    renameSync(file, aside);
    const lost = isAway(/gateway.sqlite was deleted or replaced while the gateway ran: restart it/);
    await assert.rejects(run("add", "after"), lost);
    copyFileSync(aside, file);
    await assert.rejects(run("add", "after"), lost);
    assert.deepEqual(await run("all"), ["before"]);
    renameSync(aside, file);
    while (thread.trouble !== undefined) await delay(20);
    await run("add", "after");
    assert.deepEqual(await run("all"), ["before", "after"]);
  });

  it("reports a failure, and recovers by itself", async (t) => {
    const { thread, run, states } = await open(t);
    await run("add", "before");
    const lost = run("exit");
    const behind = run("add", "behind");
    await Promise.all([
      assert.rejects(lost, isAway(/its thread ended/)),
      assert.rejects(behind, isAway(/its thread ended/)),
    ]);
    assert.equal(thread.trouble, "its thread ended");
    await assert.rejects(run("all"), isAway(/its thread ended/));
    while (thread.trouble !== undefined) await delay(20);
    assert.deepEqual(states, ["its thread ended", undefined]);
    assert.deepEqual(await run("all"), ["before"]);
  });

  it("ends when it is closed while its thread is started again", async (t) => {
    const { path, remove } = freshDirectory();
    t.after(remove);
    let starts = 0;
    const again = Promise.withResolvers<void>();
    const thread = await openStoreThread({
      directory: path,
      startWorker(data) {
        if (++starts === 2) again.resolve();
        return startWorker(data);
      },
    });
    await assert.rejects(thread.run("exit", []), isAway(/its thread ended/));
    await again.promise;
    await thread.close();
    assert.equal(starts, 2);
  });

  it("takes no operations while the disk hangs, and still maps a late result", async (t) => {
    const { thread, run } = await open(t);
    // Each operation has its own time, whenever the one before it began.
    await run("all");
    await delay(100);
    const silence = run("wait", 7_000);
    const late = Promise.withResolvers<void>();
    const slow = thread.run("add", ["late"], () => late.resolve());
    await assert.rejects(silence, isAway(/has not answered for 5000 ms/));
    await assert.rejects(slow, isAway(/has not answered/));
    assert.match(thread.trouble ?? "", /has not answered/);
    await assert.rejects(run("add", "not in line"), isAway(/has not answered/));
    await late.promise;
    while (thread.trouble !== undefined) await delay(20);
    assert.deepEqual(await run("all"), ["late"]);
  });

  it("is not taken for silent because this process stood still", async (t) => {
    const { thread, run } = await open(t);
    const added = run("add", "a");
    await new Promise((sent) => setImmediate(sent));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5_100);
    await added;
    assert.equal(thread.trouble, undefined);
  });

  it("completes pending operations when it is closed, and rejects later ones", async (t) => {
    const { thread, run } = await open(t);
    const added = run("add", "last");
    const closed = thread.close();
    await assert.rejects(run("add", "too late"), isAway(/it is closed/));
    await added;
    await closed;
    await thread.close();
  });
});

const shop = { name: "shop", epoch: "epoch", retentionMs: 1 };
const members = { index: "due", member: "call", score: 1 };
const commit = { token: "t", records: [], events: [], indexes: [members] };

/** A worker on a disk that takes no writes while `full` is set. */
function onFullDisk(t: TestContext) {
  const database = new DatabaseSync(":memory:");
  t.after(() => database.close());
  migrate(database);
  const disk = { full: true, commits: 0, rollsBack: true };
  const failing = overridden(database, {
    exec(text) {
      if (text === "COMMIT" && ++disk.commits && disk.full) throw new Error("disk is full");
      if (text === "ROLLBACK" && !disk.rollsBack) throw new Error("disk I/O error");
      database.exec(text);
    },
  });
  return { disk, work: createWorker(failing, openKernel(database)) };
}

test("reads are answered beside writes that the disk does not take", (t) => {
  const { disk, work } = onFullDisk(t);
  const write = { operation: "commit", args: [shop, 0, commit] };
  assert.deepEqual(
    work([
      { id: 1, ...write },
      { id: 2, operation: "range", args: [shop, 0, ["due"], { limit: 9 }] },
      { id: 3, ...write },
    ]),
    [
      { id: 1, error: "disk is full" },
      { id: 2, value: [] },
      { id: 3, error: "disk is full" },
    ],
    "and see nothing of these writes",
  );
  assert.equal(disk.commits, 1, "a disk that takes long to fail is asked once");
});

test("a transaction that could not be rolled back at once is seen by no later read", (t) => {
  const { disk, work } = onFullDisk(t);
  disk.rollsBack = false;
  const range = { id: 2, operation: "range", args: [shop, 0, ["due"], { limit: 9 }] };
  work([{ id: 1, operation: "commit", args: [shop, 0, commit] }]);
  assert.deepEqual(work([range]), [{ id: 2, error: "disk I/O error" }]);
  disk.rollsBack = true;
  assert.deepEqual(work([range]), [{ id: 2, value: [] }]);
});

test("the store forgets what it learned from a transaction that was not written", (t) => {
  const { disk, work } = onFullDisk(t);
  const commits = (epoch: string) =>
    work([{ id: 1, operation: "commit", args: [{ ...shop, epoch }, 0, commit] }]);
  assert.deepEqual(commits("first"), [{ id: 1, error: "disk is full" }]);
  disk.full = false;
  assert.ok("value" in (commits("second")[0] ?? {}));
  const [read] = work([{ id: 2, operation: "read", args: [shop, 0, []] }]);
  assert.match(JSON.stringify(read), /"epoch":"second"/, "the epoch that is in the database");
});
