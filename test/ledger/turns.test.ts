import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createTurns } from "../../src/ledger/turns.ts";

test("concurrent readers take turns and get at most `eventsPerTurn` events a turn together", async () => {
  const turns = createTurns({ eventsPerTurn: 4, pagesAtOnce: 1 });
  const taken: number[] = [];
  const reader = async (name: number) => {
    for (let n = 0; n < 5; n += 1) {
      await turns.take();
      taken.push(name);
    }
  };
  const readers = [1, 2, 3].map(reader);
  const counts: number[] = [];
  while (taken.length < 15) {
    counts.push(taken.length);
    await nextTurn();
  }
  await Promise.all(readers);
  for (const [turn, count] of counts.entries()) {
    assert.ok(count <= 4 * (turn + 1), `after each turn: ${counts}`);
  }
  for (const name of [1, 2, 3]) assert.ok(taken.slice(0, 9).includes(name), `order: ${taken}`);
});

test("a single reader continues at once until the events of the turn are used up", async () => {
  const turns = createTurns({ eventsPerTurn: 2, pagesAtOnce: 1 });
  assert.equal(turns.take(), undefined);
  assert.equal(turns.take(), undefined);
  const third = turns.take();
  assert.ok(third);
  await third;
  assert.equal(turns.take(), undefined);
});

test("at most `pagesAtOnce` pages are read at a time, and a failed page frees its slot", async () => {
  const turns = createTurns({ eventsPerTurn: 1, pagesAtOnce: 2 });
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
  const pages = Array.from({ length: 9 }, (_, n) => turns.page(read(n % 3 === 0)));
  const results = await Promise.allSettled(pages);
  assert.equal(results.filter(({ status }) => status === "fulfilled").length, 6);
  assert.equal(most, 2);
});
