import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import type { RedisClient } from "../../src/redis/connect.ts";
import { readyWithin } from "../../src/redis/ready-within.ts";

const never = 2 ** 31 - 1;

/** A fake client with what `readyWithin` uses: its status and its `ready` event. */
function connecting() {
  const client = Object.assign(new EventEmitter().setMaxListeners(0), { status: "connecting" });
  return { emitter: client, client: client as unknown as RedisClient };
}

test("readyWithin resolves after its time, or when the connection is ready", async () => {
  const { client, emitter } = connecting();
  // The timers of `readyWithin` do not keep the process alive.
  const held = setInterval(() => {}, 1_000);
  try {
    await readyWithin(1, client);
    const all = Array.from({ length: 1_000 }, () => readyWithin(never, client));
    emitter.emit("ready");
    await Promise.all(all);
    assert.equal(emitter.listenerCount("ready"), 0);
  } finally {
    clearInterval(held);
  }
});
