import assert from "node:assert/strict";
import { test } from "node:test";
import { spreadOverTurns } from "../../src/net/spread-over-turns.ts";

test("a few tasks run at once, and more of them in later turns of the event loop", async () => {
  const ran: number[] = [];
  const inTurn = spreadOverTurns(3);
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
  const add = (from: number, to: number) => {
    for (let task = from; task <= to; task++) inTurn(() => ran.push(task));
  };
  add(1, 8);
  assert.deepEqual(ran, [1, 2, 3]);
  await turn();
  assert.deepEqual(ran, [1, 2, 3, 4, 5, 6]);
  add(9, 9);
  assert.equal(ran.length, 6, "a later task does not overtake");
  await turn();
  assert.deepEqual(ran, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
  await turn();
  await turn();
  add(10, 10);
  assert.equal(ran.at(-1), 10, "it begins anew when it had nothing to do");
});
