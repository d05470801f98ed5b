import assert from "node:assert/strict";
import { test } from "node:test";
import { createBreaker, type Verdict } from "../../src/upstream/breaker.ts";

function rig() {
  const states: string[] = [];
  const { enter, refuses } = createBreaker((state) => states.push(state));
  const calls = (count: number, verdict: Verdict) => {
    for (let n = 0; n < count; n++) enter()?.(verdict);
  };
  return { enter, refuses, states, calls };
}

test("the breaker opens after five failures without an answer in between", () => {
  const { calls, states } = rig();
  calls(4, "failed");
  calls(1, "answered");
  calls(4, "failed");
  calls(100, "nothing");
  assert.deepEqual(states, []);
  calls(1, "failed");
  assert.deepEqual(states, ["open"]);
});

test("an open breaker lets one call through at a time, whose answer closes it", () => {
  const { enter, refuses, calls, states } = rig();
  calls(5, "failed");
  for (const verdict of ["failed", "nothing", "failed"] as const) {
    assert.equal(refuses(), false);
    const probe = enter();
    assert.ok(probe);
    for (let n = 0; n < 10; n++) assert.equal(enter(), undefined);
    assert.equal(refuses(), true);
    probe(verdict);
  }
  assert.deepEqual(states, ["open"]);
  calls(1, "answered");
  assert.deepEqual(states, ["open", "closed"]);
  assert.ok(enter() && enter(), "calls go through side by side");
  calls(4, "failed");
  assert.deepEqual(states, ["open", "closed"], "it starts to count anew");
});

test("calls that were let through before the breaker opened count like any other", () => {
  const { enter, refuses, calls, states } = rig();
  const [answered, failed] = [enter(), enter()];
  calls(5, "failed");
  const probe = enter();
  failed?.("failed");
  assert.equal(refuses(), true, "one call at a time");
  answered?.("answered");
  assert.deepEqual([refuses(), states], [false, ["open", "closed"]]);
  probe?.("failed");
  assert.equal(refuses(), false);
});
