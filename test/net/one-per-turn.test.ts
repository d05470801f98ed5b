import assert from "node:assert/strict";
import { test } from "node:test";
import { onePerTurn } from "../../src/net/one-per-turn.ts";

test("tasks run in their order, one in each turn of the event loop", async () => {
  const ran: string[] = [];
  const so = () => ran.join(" ");
  const inTurn = onePerTurn();
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
  for (const name of ["first", "second", "third"]) inTurn(() => ran.push(name));
  assert.equal(so(), "");
  await turn();
  assert.equal(so(), "first");
  inTurn(() => ran.push("fourth"));
  await turn();
  assert.equal(so(), "first second");
  await turn();
  await turn();
  assert.equal(so(), "first second third fourth");
  inTurn(() => ran.push("later"));
  await turn();
  assert.ok(so().endsWith("later"), "it begins anew when it had nothing to do");
});
