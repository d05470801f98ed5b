import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { StoreTimeout } from "../../src/errors.ts";
import { within } from "../../src/net/timer.ts";

/** A mocked clock that only `pass` moves; its timers fire `lateMs` late. */
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

test("within rejects with StoreTimeout when no answer arrives in time", async (t) => {
  const clock = clockOf(t);
  const { outcome } = ask();
  await clock.pass(500);
  await clock.pass(1);
  assert.ok((await outcome) instanceof StoreTimeout);
});

test("within accepts an answer that arrives after the process was blocked", async (t) => {
  const clock = clockOf(t);
  const { outcome, answer } = ask();
  await clock.pass(500, 600);
  await clock.pass(499);
  answer();
  assert.equal(await outcome, "answer");
});

test("within waits once more for as long as the process was blocked, up to `ms`", async (t) => {
  for (const [lateMs, againMs] of [
    [100, 100],
    [9_000, 500],
  ] as const) {
    await t.test(`${lateMs} ms late`, async (t) => {
      const clock = clockOf(t);
      const { outcome } = ask();
      await clock.pass(500, lateMs);
      // A second block does not extend the wait again.
      await clock.pass(againMs, 5_000);
      await clock.pass(1);
      assert.ok((await outcome) instanceof StoreTimeout);
    });
  }
});
