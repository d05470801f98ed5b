import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createDeadLetters } from "../../src/admin/dead-letters.ts";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { createMemoryLedger } from "../../src/ledger/memory.ts";
import { noReport } from "../../src/report.ts";

function rig(t: TestContext) {
  const log = createMemoryLedger({ retentionMs: 86_400_000 });
  t.after(() => log.close());
  const letters = createDeadLetters(["shop"], log, noReport);
  let added = 0;
  const find = async (body: string | Uint8Array) => {
    const id = `l-${++added}`;
    await log.letters.addDeadLetter("shop", {
      ...{ id, kind: EventKind.PAYOUT, reason: "why", receivedAtMs: added },
      body: Buffer.from(body as string).toString("base64"),
    });
    return letters.find("shop", id);
  };
  const textOf = async (body: string) => (await find(body))?.text ?? "";
  return { letters, find, textOf };
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
  const page = await letters.list({ accounts: ["shop"], limit: 10, order: "newest" });
  assert.deepEqual(page, { dead_letters: [view], total: 1 });
  assert.equal("text" in ((await find(Uint8Array.of(0xff, 0xfe))) ?? {}), false, "it is no text");
});

test("redacts fields that the contract marks as secret, at any depth", async (t) => {
  const { textOf } = rig(t);
  const canaries = { cvv: "941", pan: "4000000000003014", token: "tok-canary", full_number: "77" };
  const text = await textOf(
    JSON.stringify({ a: [{ deep: canaries }], fullNumber: "88", CVC: 123 }),
  );
  for (const secret of ["941", "3014", "tok-canary", "77", "88", "123"]) {
    assert.ok(!text.includes(secret), text);
  }
  assert.equal(text.match(/\[redacted\]/g)?.length, 6);
});

test("masks card numbers in texts and numbers, and keeps the digits of other numbers", async (t) => {
  const { textOf } = rig(t);
  assert.equal(
    await textOf(
      '{"note":"paid by 4111 1111 1111 1111","as_number":4111111111111111,"amount":10.10}',
    ),
    '{\n  "note": "paid by 4111 11** **** 1111",\n  "as_number": "411111******1111",\n  "amount": 10.10\n}',
  );
  assert.equal(await textOf('{"fc_id":9007199254740993}'), '{\n  "fc_id": 9007199254740993\n}');
});

test("redacts secrets in bodies that are not JSON, also where they are cut off", async (t) => {
  const { textOf } = rig(t);
  assert.equal(await textOf('{"id":1,"cvv":"94'), '{"id":1,"cvv":[redacted]');
  assert.equal(await textOf('{"id":1,"cvv": 941, "x":2'), '{"id":1,"cvv": [redacted], "x":2');
  assert.equal(
    await textOf("number=4111111111111111&amount=10.10"),
    "number=[redacted]&amount=10.10",
  );
  assert.equal(await textOf("card 4111111111111111 declined"), "card 411111******1111 declined");
});
