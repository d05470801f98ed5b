import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { Cursor } from "../../../src/stores/cursor.ts";
import { beginning, encodeCursor, nextPosition } from "../../../src/stores/cursor.ts";
import { RedisFeed, type StoredPage } from "../../../src/stores/redis/feed.ts";

const epoch = "00000000";
const at = (ms: number): Cursor => encodeCursor(nextPosition(beginning, ms), epoch);

test("a wake-up during a read makes the feed read again without waiting for the next poll", async (t) => {
  // The mocked timers never fire: the feed does not poll, and reads only after a wake-up.
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let tail = at(1);
  const page = (): StoredPage => ({
    ...{ rows: [], upTo: tail, stored: tail },
    bounds: { epoch, floor: at(0), tail },
  });
  const reads: PromiseWithResolvers<StoredPage>[] = [];
  let wake = () => {};
  const feed = new RedisFeed({
    read: (after) => {
      if (after === undefined) return Promise.resolve(page());
      const read = Promise.withResolvers<StoredPage>();
      reads.push(read);
      return read.promise;
    },
    settle: async () => {},
    wakeUps: {
      listen: async (_: string, listener: () => void) => {
        wake = listener;
      },
      unlisten() {},
      renew() {},
      close() {},
    },
    channel: "c",
    listener: { row() {}, fail() {} },
    onState: () => {},
    onEnd: () => {},
  });
  await feed.started;
  const settled = async () => {
    for (let i = 0; i < 10; i++) await turn();
  };
  await settled();
  assert.equal(reads.length, 1, "once when the hints come in");
  const early = page();
  tail = at(2);
  wake();
  await settled();
  assert.equal(reads.length, 1, "one at a time");
  reads[0]?.resolve(early);
  await settled();
  assert.equal(reads.length, 2, "what came meanwhile may have been missed");
  reads[1]?.resolve(page());
  await settled();
  assert.equal(reads.length, 2);
  feed.end();
});

test("a wake-up makes the feed read each event once, and once only", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const event = { cursor: at(2), bytes: Buffer.from("event") };
  const seen: unknown[] = [];
  let stored: (typeof event)[] = [];
  let limits: number[] = [];
  let wake = () => {};
  const feed = new RedisFeed({
    async read(after, limit) {
      limits.push(limit);
      const tail = stored.at(-1)?.cursor ?? at(1);
      const rows = stored.filter(({ cursor }) => after !== undefined && cursor > after);
      return { rows, upTo: tail, stored: tail, bounds: { epoch, floor: at(0), tail } };
    },
    settle: async () => {},
    wakeUps: {
      listen: async (_: string, listener: () => void) => {
        wake = listener;
      },
      unlisten() {},
      renew() {},
      close() {},
    },
    channel: "c",
    listener: { row: (row) => seen.push(row), fail: () => {} },
    onState: () => {},
    onEnd: () => {},
  });
  await feed.started;
  const settled = async () => {
    for (let i = 0; i < 10; i++) await turn();
  };
  await settled();
  limits = [];
  stored = [event];
  wake();
  await settled();
  assert.equal(limits.length, 1);
  assert.deepEqual(seen, [event]);
  feed.end();
});
