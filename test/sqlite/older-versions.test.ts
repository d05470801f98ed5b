import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { it } from "node:test";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentState } from "../../src/gen/payments/v1/payment_pb.ts";
import { migrations, numberOf } from "../../src/sqlite/schema.ts";
import { payment, step, take } from "../events/entries.ts";
import { lettersOf } from "../events/letters.ts";
import { openLog } from "../events/sqlite/rig.ts";
import { openIntents } from "../intents/sqlite/rig.ts";
import { freshDirectory } from "./directories.ts";

/** When version 1 wrote the fixture: two events of order-1, one of order-2, a dead letter. */
const written = Date.parse("2026-11-20T10:00:00Z");

it("the store keeps the data of a file of schema version 1 and migrates it", {
  timeout: 60_000,
}, async (t) => {
  const { path, remove } = freshDirectory();
  t.after(remove);
  const file = join(path, "gateway.sqlite");
  const old = new DatabaseSync(file);
  old.exec(readFileSync(new URL("../fixtures/sqlite/version-1.sql", import.meta.url), "utf8"));
  assert.equal(numberOf(old, "user_version"), 1);
  old.close();

  const { log, close } = await openLog(path, { now: () => written + 60_000 });
  const { signal } = new AbortController();
  const events = await take(await log.read("shop", { kinds: [] }, "earliest", { signal }), 3);
  assert.deepEqual(events.map(step), ["payment:pending", "payment:success", "payment:pending"]);
  const rest = await log.read("shop", { kinds: [] }, events[0]?.cursor ?? "", { signal });
  assert.equal((await take(rest, 1))[0]?.cursor, events[1]?.cursor);
  const snapshot = await log.snapshot("shop", EventKind.PAYMENT, "order-1");
  assert.deepEqual(
    snapshot?.states.map(({ status }) => status),
    ["success"],
  );
  const { operations = [] } = snapshot?.facts ?? {};
  assert.deepEqual(
    operations.map(({ operation, status, atMs }) => [operation, status, atMs > 0]),
    [["payment", "success", true]],
  );
  assert.equal((await log.append("shop", payment({ status: "success" }))).outcome, "duplicate");
  const refund = await log.append("shop", payment({ operation: "refund" }));
  assert.equal(refund.event?.state, PaymentState.PAID);
  const unfinished = await log.unfinished("shop", 0, 10);
  assert.deepEqual(
    unfinished.map(({ subjectId }) => subjectId),
    ["pay-2"],
  );
  assert.equal((await lettersOf(log, "shop"))[0]?.reason, "the body is not JSON");
  await close();

  // The tables of later versions exist.
  const intents = await openIntents(path);
  t.after(() => intents.close());
  assert.deepEqual(await intents.store.open("shop", EventKind.PAYMENT, "order-1"), []);
  const now = new DatabaseSync(file, { readOnly: true });
  assert.equal(numberOf(now, "user_version"), migrations.length);
  now.close();
});
