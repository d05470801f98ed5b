import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createDeadLetters } from "../../src/admin/dead-letters.ts";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { type Observations, reportTo } from "../../src/report.ts";
import { createMemoryLedger } from "../ledger/create.ts";

function rig(t: TestContext) {
  const log = createMemoryLedger({ retentionMs: 86_400_000 });
  t.after(() => log.close());
  const told: Observations["letterHandled"][] = [];
  const report = reportTo({ letterHandled: (about) => void told.push(about) });
  const letters = createDeadLetters(log, report);
  let added = 0;
  const find = async (body: string | Uint8Array) => {
    const id = `l-${++added}`;
    await log.letters.addDeadLetter("shop", {
      ...{ id, kind: EventKind.PAYOUT, reason: "why", receivedAtMs: added },
      body: Buffer.from(body as string).toString("base64"),
    });
    return letters.find("shop", id, "ops");
  };
  return { letters, find, told };
}

test("find returns what list shows of a letter, its body and the masked text", async (t) => {
  const { letters, find } = rig(t);
  const view = {
    account: "shop",
    id: "l-1",
    resource: "payouts",
    reason: "why",
    receivedAt: "1970-01-01T00:00:00.001Z",
    bytes: 2,
  };
  assert.deepEqual(await find("hi"), { ...view, body: "aGk=", text: "hi" });
  const secret = (await find('{"cvv":"941","note":"4111 1111 1111 1111"}'))?.text;
  assert.equal(secret, '{\n  "cvv": "[redacted]",\n  "note": "4111 11** **** 1111"\n}');
  assert.equal((await letters.find("shop", "l-1", undefined))?.body, undefined);
  const page = await letters.list("shop", { limit: 10, order: "oldest" });
  assert.deepEqual([page.dead_letters[0], page.total], [view, 2]);
  assert.equal((await find(""))?.text, "", "an empty body is a text");
  const bytes = await find(Uint8Array.of(0xff, 0xfe));
  assert.deepEqual([bytes?.body, bytes?.text], ["//4=", undefined], "it is no text");
});

test("a replay that is understood is told with its operator, and one that is not, not", async (t) => {
  const { letters, find, told } = rig(t);
  await find('{"external_id": "e", "transaction_id": "t", "status": "success"}');
  await find("[]");
  told.length = 0;
  const found: string[] = [];
  for (const id of ["l-1", "l-2", "l-1"]) found.push(await letters.replay("shop", id, "ops"));
  assert.deepEqual(found, ["stored", "not_understood", "not_found"]);
  const letter = { account: "shop", id: "l-1", outcome: "stored" };
  assert.deepEqual(told, [{ operator: "ops", did: "replayed", letter }]);
});
