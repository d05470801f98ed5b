import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { Cursor } from "../../../src/stores/cursor.ts";
import { cursorOf, firstPlace, nextPlace } from "../../../src/stores/cursor.ts";
import { RedisFeed, type StoredPage } from "../../../src/stores/redis/feed.ts";

const epoch = "00000000";
const at = (ms: number): Cursor => cursorOf(nextPlace(firstPlace, ms), epoch);

function page(tail: Cursor): StoredPage {
  return { rows: [], upTo: tail, stored: tail, bounds: { epoch, floor: at(0), tail } };
}

/**
 * A feed of what `read` returns, once it has settled. The mocked timers never fire: it does not poll,
 * and reads only after a wake-up.
 */
async function startFeed(t: TestContext, read: (after?: Cursor) => Promise<StoredPage>) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let wake = () => {};
  const feed = new RedisFeed({
    read,
    settle: async () => {},
    wakeUps: {
      listen: async (_: string, listener: () => void) => {
        wake = listener;
      },
      unlisten() {},
      renew() {},
    },
    channel: "c",
    listener: { row() {}, fail() {} },
    onState: () => {},
  });
  t.after(() => feed.end());
  await feed.start();
  const settled = async () => {
    for (let i = 0; i < 10; i++) await turn();
  };
  await settled();
  return { settled, wake: () => wake() };
}

test("a wake-up during a read makes the feed read again without waiting for the next poll", async (t) => {
  const reads: PromiseWithResolvers<StoredPage>[] = [];
  const { wake, settled } = await startFeed(t, async (after) => {
    if (after === undefined) return page(at(1));
    const read = Promise.withResolvers<StoredPage>();
    reads.push(read);
    return read.promise;
  });
  assert.equal(reads.length, 1, "once when the hints come in");
  wake();
  await settled();
  assert.equal(reads.length, 1, "one at a time");
  reads[0]?.resolve(page(at(1)));
  await settled();
  assert.equal(reads.length, 2, "what came meanwhile may have been missed");
  reads[1]?.resolve(page(at(2)));
  await settled();
  assert.equal(reads.length, 2);
});
