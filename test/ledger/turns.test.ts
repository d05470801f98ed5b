import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { EventSchema } from "../../src/gen/payments/v1/event_pb.ts";
import { readOn, type StoredLog } from "../../src/ledger/tail.ts";
import { createTurns } from "../../src/ledger/turns.ts";
import { encodeCursor, newEpoch } from "../../src/stores/cursor.ts";

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

test("readers of stored events yield to the event loop after some events", async () => {
  const epoch = newEpoch();
  const stored = Array.from({ length: 300 }, (_, n) =>
    create(EventSchema, { cursor: encodeCursor({ ms: 1, seq: n + 1 }, epoch) }),
  );
  const tail = stored.at(-1)?.cursor ?? "";
  const bounds = { epoch, floor: encodeCursor({ ms: 0, seq: 0 }, epoch), tail };
  const log: StoredLog = {
    turns: createTurns(),
    follow: async () => () => {},
    bounds: async () => bounds,
    async page(_, after = "", limit) {
      const events = stored.filter(({ cursor }) => cursor > after).slice(0, limit);
      return { events, upTo: events.at(-1)?.cursor ?? tail, bounds };
    },
  };
  let read = 0;
  let over = false;
  const reader = async () => {
    const { signal } = new AbortController();
    const events = await readOn(log, { kinds: [] }, "earliest", { signal });
    const cursors: string[] = [];
    for await (const { cursor } of events) {
      cursors.push(cursor);
      read += 1;
      if (cursor === tail) break;
    }
    return cursors;
  };
  const readers = Promise.all(Array.from({ length: 40 }, reader)).finally(() => {
    over = true;
  });
  readers.catch(() => {});
  let most = 0;
  while (!over) {
    const before = read;
    await nextTurn();
    most = Math.max(most, read - before);
  }
  const told = await readers;
  // Two turns of the readers may overlap the time between two measurements.
  assert.ok(most <= 2 * 32, `${most} events within one turn`);
  const all = stored.map(({ cursor }) => cursor);
  for (const cursors of told) assert.deepEqual(cursors, all);
});
