import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { it } from "node:test";
import type { RedisClient } from "../../src/redis/connect.ts";
import { readyWithin } from "../../src/redis/ready.ts";

const never = 2 ** 31 - 1;

/** A client as far as it is asked: whether it is ready, and when. */
function connecting() {
  const client = Object.assign(new EventEmitter(), { status: "connecting" });
  return { emitter: client, client: client as unknown as RedisClient };
}

it("lets a thousand wait for one connection by one listener", async () => {
  const { client, emitter } = connecting();
  const all = Array.from({ length: 1_000 }, () => readyWithin(never, client));
  assert.equal(emitter.listenerCount("ready"), 1);
  emitter.status = "ready";
  emitter.emit("ready");
  await Promise.all(all);
  await readyWithin(never, client);
  assert.equal(emitter.listenerCount("ready"), 0);
});

it("waits no longer than it is told to, and again when the connection is lost", async () => {
  const { client, emitter } = connecting();
  // Its timers hold no process.
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
