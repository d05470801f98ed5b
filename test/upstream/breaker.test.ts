import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createBreaker, type Verdict } from "../../src/upstream/breaker.ts";

const maxPauseMs = 10_000;

/** A breaker in virtual time. `random` is the jitter, 0 for none. */
function rig(random = 0) {
  const time = { now: 5_000 };
  const states: string[] = [];
  const pauses: number[] = [];
  const breaker = createBreaker({
    maxPauseMs,
    now: () => time.now,
    random: () => random,
    onState: (state) => {
      states.push(state);
      if (state === "open") pauses.push(breaker.refusal() ?? 0);
    },
  });
  /** Makes one call with this verdict. @returns whether the breaker let it through. */
  const call = (verdict: Verdict): boolean => {
    const judge = breaker.enter();
    judge?.(verdict);
    return judge !== undefined;
  };
  const calls = (count: number, verdict: Verdict) => {
    let through = 0;
    for (let n = 0; n < count; n++) through += Number(call(verdict));
    return through;
  };
  return { breaker, time, states, pauses, call, calls };
}

test("the breaker opens once half of at least twenty calls failed", () => {
  const { calls, states } = rig();
  calls(10, "answered");
  assert.equal(calls(9, "failed"), 9);
  assert.deepEqual(states, []);
  assert.equal(calls(5, "failed"), 1);
  assert.deepEqual(states, ["open"]);
});

test("failures below the share leave the breaker closed, however many", () => {
  const { call, states } = rig();
  for (let n = 0; n < 1_000; n++) {
    call("answered");
    call(n % 2 === 0 ? "failed" : "answered");
  }
  assert.deepEqual(states, []);
});

test("failures of the window before do not count", () => {
  const { calls, time, states } = rig();
  calls(19, "failed");
  time.now += 10_000;
  calls(19, "failed");
  assert.deepEqual(states, []);
  calls(1, "failed");
  assert.deepEqual(states, ["open"]);
});

test("five time-outs without an answer in between open the breaker", () => {
  const { call, calls, states } = rig();
  calls(4, "timeout");
  call("answered");
  calls(4, "timeout");
  call("nothing");
  assert.deepEqual(states, []);
  call("timeout");
  assert.deepEqual(states, ["open"]);
});

test("calls with the verdict nothing are not counted", () => {
  const { calls, states } = rig();
  calls(1_000, "nothing");
  calls(19, "failed");
  assert.deepEqual(states, []);
});

test("an open breaker lets no call through and returns how long it stays open", () => {
  const { breaker, time, calls } = rig();
  calls(20, "failed");
  assert.equal(breaker.refusal(), 1_000);
  time.now += 999;
  assert.equal(breaker.refusal(), 1);
  assert.equal(breaker.enter(), undefined);
  time.now += 1;
  assert.equal(breaker.refusal(), undefined);
});

test("a half-open breaker lets one probe through at a time", () => {
  const { breaker, time, calls, states } = rig();
  calls(20, "failed");
  time.now += 1_000;
  const probe = breaker.enter();
  assert.ok(probe);
  for (let n = 0; n < 10; n++) assert.equal(breaker.enter(), undefined);
  assert.ok(breaker.refusal()! > 0);
  probe("answered");
  assert.equal(breaker.refusal(), undefined);
  assert.deepEqual(states, ["open", "halfOpen", "closed"]);
  assert.equal(calls(19, "failed"), 19, "it starts to count anew");
});

test("after a probe with the verdict nothing, the next call is the probe", () => {
  const { time, call, calls, states } = rig();
  calls(20, "failed");
  time.now += 1_000;
  assert.equal(call("nothing"), true);
  assert.equal(call("nothing"), true);
  assert.equal(call("answered"), true);
  assert.deepEqual(states, ["open", "halfOpen", "closed"]);
});

test("each failed probe doubles the pause up to maxPauseMs, and an answer resets it", () => {
  const { time, call, calls, pauses } = rig();
  calls(20, "failed");
  for (let n = 0; n < 5; n++) {
    time.now += pauses.at(-1)!;
    assert.equal(call("timeout"), true);
  }
  assert.deepEqual(pauses, [1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
  time.now += 10_000;
  call("answered");
  calls(20, "failed");
  assert.equal(pauses.at(-1), 1_000);
});

test("jitter shortens the pause by up to a half", () => {
  const { calls, pauses } = rig(1);
  calls(20, "failed");
  assert.deepEqual(pauses, [500]);
});

test("calls let through before the breaker opened do not change its state later", () => {
  const { breaker, time, calls, states } = rig();
  const early = breaker.enter();
  calls(20, "failed");
  early?.("answered");
  assert.deepEqual(states, ["open"]);
  time.now += 1_000;
  const probe = breaker.enter();
  early?.("failed");
  probe?.("answered");
  probe?.("failed");
  early?.("timeout");
  assert.deepEqual(states, ["open", "halfOpen", "closed"]);
  assert.equal(calls(19, "failed"), 19);
});

test("no refusal lasts longer than maxPauseMs, and the breaker closes once calls succeed again", () => {
  const verdicts: Verdict[] = ["answered", "failed", "timeout", "nothing"];
  const step = fc.record({
    ms: fc.nat(3_000),
    verdict: fc.constantFrom(...verdicts),
    keep: fc.nat(4),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const { breaker, time } = rig(0.5);
      const waiting: Array<() => void> = [];
      for (const { ms, verdict, keep } of steps) {
        time.now += ms;
        const refusal = breaker.refusal();
        const pass = breaker.enter();
        assert.equal(pass === undefined, refusal !== undefined);
        assert.ok(refusal === undefined || (refusal > 0 && refusal <= maxPauseMs));
        if (pass) waiting.push(() => pass(verdict));
        if (waiting.length > keep) waiting.shift()?.();
      }
      // Once all calls are settled, an answered probe after the longest pause closes the breaker.
      for (const settle of waiting) settle();
      time.now += maxPauseMs;
      breaker.enter()?.("answered");
      assert.equal(breaker.refusal(), undefined);
    }),
    { numRuns: 300 },
  );
});
