import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { RedisTimeout, within } from "../../src/redis/deadline.ts";

/** Time that stands still but for `pass`, where timers fire `lateMs` too late. */
function clockOf(t: TestContext) {
  let nowMs = 0;
  t.mock.timers.enable({ apis: ["setTimeout"] });
  t.mock.method(performance, "now", () => nowMs);
  return {
    async pass(ms: number, lateMs = 0) {
      nowMs += ms + lateMs;
      t.mock.timers.tick(ms);
      await new Promise(setImmediate);
    },
  };
}

function ask() {
  const { promise, resolve } = Promise.withResolvers<string>();
  const outcome = within(500, promise).catch((error: unknown) => error);
  return { outcome, answer: () => resolve("answer") };
}

test("no answer within the time is the end of it", async (t) => {
  const clock = clockOf(t);
  const { outcome } = ask();
  await clock.pass(500);
  await clock.pass(1);
  assert.ok((await outcome) instanceof RedisTimeout);
});

test("an answer that a process which stood still has yet to read is taken", async (t) => {
  const clock = clockOf(t);
  const { outcome, answer } = ask();
  await clock.pass(500, 600);
  await clock.pass(499);
  answer();
  assert.equal(await outcome, "answer");
});

test("as long as it stood still is waited, and no longer", async (t) => {
  for (const [lateMs, againMs] of [
    [100, 100],
    [9_000, 500],
  ] as const) {
    await t.test(`${lateMs} ms late`, async (t) => {
      const clock = clockOf(t);
      const { outcome } = ask();
      await clock.pass(500, lateMs);
      // It stands still again: that is no excuse twice.
      await clock.pass(againMs, 5_000);
      await clock.pass(1);
      assert.ok((await outcome) instanceof RedisTimeout);
    });
  }
});
