import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { EventKind, EventSchema } from "../../src/gen/payments/v1/event_pb.ts";
import { LedgerAccount } from "../../src/ledger/account.ts";
import { writeEvent } from "../../src/ledger/stored-event.ts";
import type { AccountKernel, Listener } from "../../src/stores/kernel.ts";

const topic = { kind: EventKind.PAYMENT, externalId: "order-1" } as const;
const follower = { event() {}, fail() {} };

/** An account whose store begins each watch as the test says. */
function watched() {
  const watches: { readonly listener: Listener; begin(): void; fail(error: Error): void }[] = [];
  const watch = (listener: Listener) => {
    const { promise, resolve, reject } = Promise.withResolvers<() => void>();
    watches.push({ listener, begin: () => resolve(() => {}), fail: reject });
    return promise;
  };
  return { account: accountOn({ watch } as unknown as AccountKernel), watches };
}

function accountOn(kernel: AccountKernel): LedgerAccount {
  const options = { retentionMs: 1, firstLookMs: 1, giveUpMs: 1, keyringOf: undefined };
  return new LedgerAccount("shop", kernel, options, undefined as never);
}

test("a watch that cannot begin while its account is closed ends no process", async () => {
  const { account, watches } = watched();
  const followed = account.follow(topic, follower);
  account.close(new Error("closed"));
  watches[0]?.fail(new Error("away"));
  await assert.rejects(followed, /away/);
  await new Promise(setImmediate);
});

test("a watch that failed leaves the next one to its followers", async () => {
  const { account, watches } = watched();
  const first = account.follow(topic, follower);
  watches[0]?.listener.fail(new Error("away"));
  const second = account.follow(topic, follower);
  watches[0]?.fail(new Error("away"));
  await assert.rejects(first, /away/);
  watches[1]?.begin();
  await second;
  await account.follow(topic, follower);
  assert.equal(watches.length, 2);
});

test("an own event is known by its cursor and its bytes, while it is one of the newest 256", async () => {
  let stored = 0;
  const kernel = {
    ...{ hasClock: true, nowMs: () => 1_000 },
    commit: async () => ({ kind: "committed", nowMs: 1_000, cursors: [`c${stored++}`] }),
  } as unknown as AccountKernel;
  const account = accountOn(kernel);
  const append = async () => {
    const event = create(EventSchema, { ...topic });
    await account.transact(["key"], (change) => change.append("topic", event));
    return event;
  };
  const own = await append();
  const bytes = writeEvent(undefined, create(EventSchema, { ...topic }));
  const find = (cursor: string, of = bytes) => account.eventOf({ cursor, bytes: of }) === own;
  const other = writeEvent(undefined, create(EventSchema, { externalId: "order-2" }));
  assert.deepEqual([find("c0"), find("c1"), find("c0", other)], [true, false, false]);
  for (let n = 1; n < 256; n++) await append();
  assert.equal(find("c0"), true);
  await append();
  assert.equal(find("c0"), false);
});
