import assert from "node:assert/strict";
import { test } from "node:test";
import { historyOf } from "../../src/admin/history.ts";
import { createMemoryLedger } from "../ledger/create.ts";
import { callLost, newCall } from "../ledger/new-call.ts";
import { closing } from "../of-suite.ts";

test("an open call is found on its payment's page behind thousands of others", async (t) => {
  const ledger = closing(t, createMemoryLedger({ retentionMs: 86_400_000 }));
  for (let n = 0; n < 2_100; n++) await callLost(ledger, "default", { externalId: `order-${n}` });
  const callsOf = async (externalId: string) =>
    (await historyOf(ledger, "default", "payment", externalId)).calls;
  assert.deepEqual(
    (await callsOf("order-2099")).map(({ externalId, state }) => [externalId, state]),
    [["order-2099", "unknown"]],
  );
  // A call that runs is not open for operators: its caller still waits.
  await ledger.begin("default", newCall({ externalId: "running" }));
  assert.deepEqual(await callsOf("running"), []);
  // Control: the list of all open calls does not go that far.
  const listed = await ledger.unsettled("default");
  assert.ok(!listed.some(({ externalId }) => externalId === "order-2099"));
});
