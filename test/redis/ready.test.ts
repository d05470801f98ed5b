import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { it } from "node:test";
import type { RedisClient } from "../../src/redis/connect.ts";
import { readyWithin } from "../../src/redis/ready.ts";

const never = 2 ** 31 - 1;

/** A fake client with what `readyWithin` uses: its status and its `ready` event. */
function connecting() {
  const client = Object.assign(new EventEmitter(), { status: "connecting" });
  return { emitter: client, client: client as unknown as RedisClient };
}

it("readyWithin adds one listener for a thousand waiters of one connection", async () => {
  const { client, emitter } = connecting();
  const all = Array.from({ length: 1_000 }, () => readyWithin(never, client));
  assert.equal(emitter.listenerCount("ready"), 1);
  emitter.status = "ready";
  emitter.emit("ready");
  await Promise.all(all);
  await readyWithin(never, client);
  assert.equal(emitter.listenerCount("ready"), 0);
});

it("readyWithin resolves after its time, and waits again when the connection is lost", async () => {
  const { client, emitter } = connecting();
  // The timers of `readyWithin` do not keep the process alive.
  const held = setInterval(() => {}, 1_000);
  try {
    await readyWithin(1, client);
    const second = readyWithin(never, client);
    assert.equal(emitter.listenerCount("ready"), 1);
    emitter.emit("ready");
    await second;
    const third = readyWithin(never, client);
    emitter.emit("ready");
    await third;
  } finally {
    clearInterval(held);
  }
});
