import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { beginning, encodeCursor, nextPosition } from "../../../src/events/cursor.ts";
import type { Cursor } from "../../../src/events/log.ts";
import { RedisFeed } from "../../../src/events/redis/feed.ts";
import type { StoredPage } from "../../../src/events/redis/store.ts";
import { EventKind, EventSchema } from "../../../src/gen/payments/v1/event_pb.ts";

const epoch = "00000000";
const at = (ms: number): Cursor => encodeCursor(nextPosition(beginning, ms), epoch);

test("a wake-up during a read makes the feed read again without waiting for the next poll", async (t) => {
  // The mocked timers never fire: the feed does not poll, and reads only after a wake-up.
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let tail = at(1);
  const page = (): StoredPage => ({
    ...{ events: [], upTo: tail, stored: tail },
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
  feed.end(new Error("over"));
});

test("a wake-up makes the feed read each event once, however many followers it has", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const event = create(EventSchema, {
    cursor: at(2),
    kind: EventKind.PAYMENT,
    externalId: "order-1",
  });
  let stored: (typeof event)[] = [];
  let limits: number[] = [];
  let wake = () => {};
  const feed = new RedisFeed({
    async read(after, limit) {
      limits.push(limit);
      const tail = stored.at(-1)?.cursor ?? at(1);
      const events = stored.filter(({ cursor }) => after !== undefined && cursor > after);
      return { events, upTo: tail, stored: tail, bounds: { epoch, floor: at(0), tail } };
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
    onState: () => {},
    onEnd: () => {},
  });
  await feed.started;
  const seen: unknown[] = [];
  const watchers = 1_000;
  for (let i = 0; i < watchers; i++) {
    const topic = { kind: EventKind.PAYMENT, externalId: "order-1" } as const;
    feed.follow(topic, { event: (each) => seen.push(each), fail: () => {} });
  }
  const settled = async () => {
    for (let i = 0; i < 10; i++) await turn();
  };
  await settled();
  limits = [];
  stored = [event];
  wake();
  await settled();
  assert.equal(limits.length, 1);
  assert.deepEqual(seen, Array(watchers).fill(event));
  assert.ok(
    seen.every((each) => each === event),
    "and shared, so that its texts are too",
  );
  feed.end(new Error("over"));
});
