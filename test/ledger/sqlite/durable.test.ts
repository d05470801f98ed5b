import assert from "node:assert/strict";
import { it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import type { GatewayError } from "../../../src/errors.ts";
import { EventKind } from "../../../src/gen/payments/v1/event_pb.ts";
import { reportTo } from "../../../src/report.ts";
import { placeIn } from "../../../src/stores/cursor.ts";
import { closing } from "../../of-suite.ts";
import { directory, inDatabase } from "../../stores/sqlite/directories.ts";
import { valuesOf } from "../../values-of.ts";
import { payment, snapshotOf } from "../entries.ts";
import { letter, lettersOf } from "../letters.ts";
import { day, openLog } from "./rig.ts";

const { signal } = new AbortController();
const everything = undefined;

it("ends watches when the store's thread ends before it says what it has stored", async (t) => {
  let cut = false;
  const { log, thread, close } = await openLog(directory(t), {
    startWorker(workerData) {
      const url = new URL("../../../src/stores/sqlite/thread.ts", import.meta.url);
      const worker = new Worker(url, { workerData });
      const emit = worker.emit.bind(worker) as (...args: unknown[]) => boolean;
      worker.emit = (...args: unknown[]) => {
        if (args[0] !== "message" || !cut) return emit(...args);
        cut = false;
        return Boolean(worker.terminate());
      };
      return worker;
    },
  });
  t.after(close);
  const seen: (string | undefined)[] = [];
  const watch = async (after: string) => {
    for await (const event of await log.read("shop", everything, after, { signal })) {
      seen.push(event.paymentId);
      if (event.paymentId === "c") return;
    }
  };
  const first = await log.append("shop", payment({ paymentId: "a" }));
  const watched = assert.rejects(watch(first.event?.cursor ?? ""), (error: GatewayError) => {
    assert.deepEqual(
      [error.code, error.details.resumeCursor],
      ["UNAVAILABLE", first.event?.cursor],
    );
    return true;
  });
  // It follows the log.
  await log.cursorBefore("shop", 1);
  cut = true;
  await assert.rejects(log.append("shop", payment({ paymentId: "b" })), { code: "UNAVAILABLE" });
  await watched;
  while (thread.trouble !== undefined) await delay(20);
  await log.append("shop", payment({ paymentId: "c" }));
  await watch(first.event?.cursor ?? "");
  assert.deepEqual(seen, ["b", "c"]);
});

it("deletes old events, and states later, but keeps dead letters", async (t) => {
  let ahead = 0;
  const now = () => Date.now() + ahead;
  const { log, thread } = closing(t, await openLog(directory(t), { now }));
  assert.equal(log.durable, true);
  const old = await log.append("shop", payment({ status: "init" }));
  await log.append("shop", payment({ operation: "confirm" }));
  await log.letters.addDeadLetter("shop", letter("l-1"));
  ahead = 7 * day + 1_000;
  const sweep = () => thread.run("sweep", [Date.now() + ahead, 7 * day]);
  assert.equal(await sweep(), false);
  assert.deepEqual(await log.history("shop", EventKind.PAYMENT, "order-1", 10), []);
  await assert.rejects(log.read("shop", everything, old.event?.cursor ?? "", { signal }), {
    code: "OUT_OF_RANGE",
  });
  assert.ok(await snapshotOf(log, "shop", EventKind.PAYMENT, "order-1"), "the state outlives it");
  assert.equal((await log.append("shop", payment({ status: "init" }))).outcome, "duplicate");
  await log.append("shop", payment({ status: "failure", amount: "1.00" }));
  ahead = 30 * day;
  assert.equal(await snapshotOf(log, "shop", EventKind.PAYMENT, "order-1"), undefined);
  // What is past its time counts no more, even while it is still on the disk.
  const anew = await log.append("shop", payment({ operation: "confirm" }));
  const snapshot = await snapshotOf(log, "shop", EventKind.PAYMENT, "order-1");
  assert.deepEqual(
    snapshot?.operations.map(({ operation, status, since }) => [operation, status, since]),
    [["confirm", "pending", anew.event?.cursor]],
  );
  assert.equal(snapshot?.operations.length, 1);
  await sweep();
  assert.equal((await lettersOf(log, "shop")).length, 1, "letters are kept until they are removed");
  assert.equal((await log.append("shop", payment({ status: "pending" }))).outcome, "stored");
});

it("lists all dead letters but one that cannot be read, and names that", async (t) => {
  const path = directory(t);
  const first = await openLog(path);
  const ids = ["l-1", "cut", "of-a-newer-kind", "l-2"];
  for (const id of ids) await first.log.letters.addDeadLetter("shop", letter(id));
  await first.close();
  const newer = '{"id": "of-a-newer-kind", "kind": 99, "receivedAtMs": 1}';
  inDatabase(path, (database) => {
    const damage = database.prepare("UPDATE records SET text = ? WHERE key = ?");
    damage.run('{"id": "cu', "letter:cut");
    damage.run(newer, "letter:of-a-newer-kind");
  });
  const told: string[] = [];
  const report = reportTo({ unreadable: ({ record }) => void told.push(record) });
  const { log } = closing(t, await openLog(path, { report }));
  assert.deepEqual(await lettersOf(log, "shop"), [letter("l-1"), letter("l-2")]);
  assert.deepEqual(told, ["letter:cut", "letter:of-a-newer-kind"]);
  await assert.rejects(log.letters.deadLetter("shop", "cut"), /letter:cut cannot be read/);
});

it("leaves out an event that cannot be read, and shows all others", async (t) => {
  const path = directory(t);
  const first = await openLog(path);
  const cursors: string[] = [];
  for (const paymentId of ["before", "damaged", "after"]) {
    const { event } = await first.log.append("shop", payment({ paymentId }));
    cursors.push(event?.cursor ?? "");
  }
  await first.close();
  const damage = "UPDATE events SET bytes = x'0aff' WHERE place = ?";
  const place = placeIn(cursors[1] ?? "");
  assert.equal(
    inDatabase(path, (of) => of.prepare(damage).run(place).changes),
    1,
  );
  const told: string[] = [];
  const report = reportTo({ unreadable: ({ record }) => void told.push(record) });
  const { log } = closing(t, await openLog(path, { report }));
  const read = await log.read("shop", everything, "earliest", { signal });
  const next = async () => {
    const { value } = await read[Symbol.asyncIterator]().next();
    return value?.cursor;
  };
  assert.deepEqual([await next(), await next()], [cursors[0], cursors[2]]);
  const history = await log.history("shop", EventKind.PAYMENT, "order-1", 10);
  assert.deepEqual(valuesOf(history, "cursor"), [cursors[0], cursors[2]]);
  for (const newest of [true, false]) {
    const whole = await log.history("shop", EventKind.PAYMENT, "order-1", 2, undefined, newest);
    assert.equal(whole.length, 2, "another one comes in its place");
  }
  assert.deepEqual([...new Set(told)], [`event ${cursors[1]}`]);
});
