import assert from "node:assert/strict";
import { test } from "node:test";
import { createRepeatedLog } from "../../src/telemetry/repeated-log.ts";

test("refusals of one sort are logged at most once a minute, with their number", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const lines: unknown[] = [];
  const log = createRepeatedLog((record) => void lines.push(record));
  for (let n = 1; n <= 1_000; n++) log.add("bad_signature", { requestId: n }, "callback");
  log.add("too_large", { requestId: 0 }, "callback");
  assert.deepEqual(lines.splice(0), [{ requestId: 1 }, { requestId: 0 }]);
  t.mock.timers.tick(60_000);
  assert.deepEqual(lines.splice(0), [{ requestId: 1_000, repeated: 999 }]);

  // More refusals: still one line a minute, and no line once they have ended.
  for (let n = 1; n <= 10; n++) log.add("bad_signature", { requestId: n }, "callback");
  assert.deepEqual(lines, []);
  t.mock.timers.tick(60_000);
  assert.deepEqual(lines.splice(0), [{ requestId: 10, repeated: 10 }]);
  t.mock.timers.tick(120_000);
  assert.deepEqual(lines, []);
  log.add("bad_signature", { requestId: "later" }, "callback");
  assert.deepEqual(lines.splice(0), [{ requestId: "later" }]);

  log.add("bad_signature", { requestId: "counted" }, "callback");
  log.end("bad_signature");
  t.mock.timers.tick(60_000);
  assert.deepEqual(lines, [], "what is over is not counted any more");
});
