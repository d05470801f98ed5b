import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createTurns, eventsPerTurn, pagesAtOnce } from "../../src/ledger/turns.ts";

test("concurrent readers take turns and get at most `eventsPerTurn` events a turn together", async () => {
  const turns = createTurns();
  const each = eventsPerTurn + 8;
  const taken: number[] = [];
  const reader = async (name: number) => {
    for (let n = 0; n < each; n += 1) {
      await turns.take();
      taken.push(name);
    }
  };
  const readers = [1, 2, 3].map(reader);
  const counts: number[] = [];
  while (taken.length < 3 * each) {
    counts.push(taken.length);
    await nextTurn();
  }
  await Promise.all(readers);
  for (const [turn, count] of counts.entries()) {
    assert.ok(count <= eventsPerTurn * (turn + 1), `after each turn: ${counts}`);
  }
  const first = taken.slice(0, 2 * eventsPerTurn);
  for (const name of [1, 2, 3]) assert.ok(first.includes(name), `order: ${taken}`);
});

test("a single reader continues in the same turn until its events are used up", async () => {
  const turns = createTurns();
  let isOver = false;
  setImmediate(() => {
    isOver = true;
  });
  for (let n = 0; n < eventsPerTurn; n += 1) await turns.take();
  assert.equal(isOver, false);
  await turns.take();
  assert.equal(isOver, true);
});

test("at most `pagesAtOnce` pages are read at a time, and a failed page frees its slot", async () => {
  const turns = createTurns();
  let reading = 0;
  let most = 0;
  const read = (fails: boolean) => async () => {
    reading += 1;
    most = Math.max(most, reading);
    await nextTurn();
    reading -= 1;
    if (fails) throw new Error("no page");
    return "page";
  };
  const pages = Array.from({ length: 3 * pagesAtOnce }, (_, n) => turns.page(read(n % 3 === 0)));
  const results = await Promise.allSettled(pages);
  assert.equal(results.filter(({ status }) => status === "fulfilled").length, 2 * pagesAtOnce);
  assert.equal(most, pagesAtOnce);
});
