import assert from "node:assert/strict";
import { test } from "node:test";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { LedgerAccount } from "../../src/ledger/account.ts";
import type { Topic } from "../../src/ledger/log.ts";
import type { AccountKernel, Listener } from "../../src/stores/kernel.ts";

const topic: Topic = { kind: EventKind.PAYMENT, externalId: "order-1" };
const follower = { event() {}, fail() {} };

/** An account whose store begins each watch as the test says. */
function watched() {
  const watches: { readonly listener: Listener; begin(): void; fail(error: Error): void }[] = [];
  const watch = (listener: Listener) => {
    const { promise, resolve, reject } = Promise.withResolvers<() => void>();
    watches.push({ listener, begin: () => resolve(() => {}), fail: reject });
    return promise;
  };
  const kernel = { watch } as unknown as AccountKernel;
  const options = { retentionMs: 1, firstLookMs: 1, giveUpMs: 1, keyringOf: undefined };
  const account = new LedgerAccount("shop", kernel, options, {
    ...{ tokens: () => "", turns: undefined as never },
  });
  return { account, watches };
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
