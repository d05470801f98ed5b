import assert from "node:assert/strict";
import { test } from "node:test";
import { createAllowance } from "../../src/net/allowance.ts";

test("an allowance gives its burst, then what comes back, by a clock that is never set back", (t) => {
  let nowMs = 0;
  t.mock.method(performance, "now", () => nowMs);
  const take = createAllowance({ burst: 2, perSecond: 10 });
  assert.deepEqual([take(), take(), take()], [true, true, false]);
  nowMs += 100;
  assert.deepEqual([take(), take()], [true, false]);
  nowMs += 60_000;
  assert.deepEqual([take(), take(), take()], [true, true, false]);
});
