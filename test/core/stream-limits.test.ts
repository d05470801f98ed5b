import assert from "node:assert/strict";
import { test } from "node:test";
import type { Caller } from "../../src/auth/caller.ts";
import { createStreamLimits } from "../../src/core/stream-limits.ts";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";

const callerOf = (name: string, more: Partial<Caller> = {}): Caller => ({
  name,
  account: "default",
  scopes: new Set(),
  ...more,
});
const service = callerOf("key:shop");
const customer = callerOf("customer:1", { customer: "1" });
const watcher = callerOf("watch:1", { watch: { kind: EventKind.PAYMENT, externalId: "order" } });

/** How many streams a caller may open, up to `most`. */
function placesOf(limits: ReturnType<typeof createStreamLimits>, caller: Caller, most: number) {
  let taken = 0;
  while (taken < most && limits.take(caller)) taken++;
  return taken;
}

test("a service may open 1,000 streams, a customer or watch token 20, anonymous callers any number", () => {
  const limits = createStreamLimits(undefined);
  assert.equal(placesOf(limits, service, 2_000), 1_000);
  assert.equal(placesOf(limits, callerOf("jwt:shop"), 2_000), 1_000);
  assert.equal(placesOf(limits, customer, 2_000), 20);
  assert.equal(placesOf(limits, watcher, 2_000), 20);
  assert.equal(placesOf(limits, callerOf("anonymous"), 2_000), 2_000);
});

test("a configured limit applies to every caller", () => {
  const limits = createStreamLimits(2);
  for (const caller of [service, customer, watcher, callerOf("anonymous")]) {
    assert.equal(placesOf(limits, caller, 10), 2);
  }
});

test("a stream that is released makes place for another one", () => {
  const limits = createStreamLimits(2);
  const release = limits.take(service);
  limits.take(service);
  release?.();
  assert.equal(placesOf(limits, service, 10), 1);
});
