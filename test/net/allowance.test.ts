import assert from "node:assert/strict";
import { test } from "node:test";
import { createAllowance } from "../../src/net/allowance.ts";

test("an allowance gives its burst, then what comes back", (t) => {
  let nowMs = 0;
  t.mock.method(performance, "now", () => nowMs);
  const take = createAllowance({ burst: 2, perSecond: 10 });
  assert.deepEqual([take(), take(), take()], [true, true, false]);
  nowMs += 100;
  assert.deepEqual([take(), take()], [true, false]);
  nowMs += 60_000;
  assert.deepEqual([take(), take(), take()], [true, true, false]);
});

test("a wall clock that is set back takes nothing away", (t) => {
  let wallMs = 1_000_000;
  t.mock.method(Date, "now", () => wallMs);
  const take = createAllowance({ burst: 2, perSecond: 10 });
  wallMs = 0;
  assert.equal(take(), true);
});
