import assert from "node:assert/strict";
import { test } from "node:test";
import { type CallKind, type Clock, createAdmission } from "../../src/limits/admission.ts";

/** A loop whose turns and whose time are the test's. */
function createLoop() {
  let nowMs = 1_000_000;
  let active = 0;
  let idle = 0;
  const afterTurn: (() => void)[] = [];
  const clock: Clock = {
    now: () => nowMs,
    afterTurn: (callback) => void afterTurn.push(callback),
    utilization: () => ({ active, idle }),
  };
  return {
    clock,
    work(ms: number) {
      nowMs += ms;
      active += ms;
    },
    rest(ms: number) {
      nowMs += ms;
      idle += ms;
    },
    endTurn() {
      for (const callback of afterTurn.splice(0)) callback();
    },
  };
}

function createBusyAdmission(maxCalls = 1_000) {
  const loop = createLoop();
  const admission = createAdmission({ maxCalls, clock: loop.clock });
  const takes = (kind: CallKind) => {
    const place = admission.enter(kind);
    place?.leave();
    return place !== undefined;
  };
  /** The loop is at its peak from now on. */
  const saturate = () => {
    takes("money");
    loop.endTurn();
    loop.work(2_500);
    takes("money");
    loop.endTurn();
  };
  return { loop, admission, takes, saturate };
}

test("other calls fill four fifths of the places, those that move money all", () => {
  const { admission } = createBusyAdmission(10);
  const places = Array.from({ length: 8 }, () => admission.enter("other"));
  assert.ok(places.every((place) => place?.moneyOnly === false));
  assert.equal(admission.enter("other"), undefined);
  assert.equal(admission.enter("unknown")?.moneyOnly, true);
  assert.ok(admission.enter("money"));
  assert.equal(admission.inFlight, 10);
  assert.equal(admission.enter("money"), undefined);
  for (const place of places) place?.leave();
  assert.equal(admission.inFlight, 2);
  assert.ok(admission.enter("other"));
});

test("a place is given back once, and one that waits for its client does not count", () => {
  const { admission } = createBusyAdmission(10);
  const place = admission.enter("other");
  place?.suspend();
  place?.suspend();
  assert.equal(admission.inFlight, 0);
  place?.resume();
  place?.resume();
  assert.equal(admission.inFlight, 1);
  place?.leave();
  place?.leave();
  place?.resume();
  assert.equal(admission.inFlight, 0);
});

test("a loop at its peak takes on what each turn reaches in time, money longer", () => {
  const { loop, takes, saturate } = createBusyAdmission();
  saturate();
  assert.ok(takes("other"));
  loop.work(30);
  assert.equal(takes("other"), false);
  assert.ok(takes("money"));
  assert.ok(takes("unknown"));
  loop.work(30);
  assert.equal(takes("money"), false);
  loop.endTurn();
  assert.ok(takes("other"), "the next turn begins anew");
});

test("a burst on a loop that has time is taken on whole, however long a turn takes", () => {
  const { loop, takes } = createBusyAdmission();
  takes("other");
  loop.endTurn();
  loop.rest(1_000);
  loop.work(1_500);
  for (let i = 0; i < 100; i++) {
    assert.ok(takes("other"));
    loop.work(5);
  }
});

test("what a process did before its first call, or between rare ones, is no load", () => {
  const { loop, takes } = createBusyAdmission();
  for (let i = 0; i < 3; i++) {
    loop.work(60_000);
    assert.ok(takes("other"));
    loop.work(1_000);
    assert.ok(takes("other"));
    loop.endTurn();
  }
});

test("a loop that has time again takes on everything", () => {
  const { loop, takes, saturate } = createBusyAdmission();
  saturate();
  loop.work(1_000);
  loop.rest(1_500);
  assert.ok(takes("other"));
  loop.work(500);
  assert.ok(takes("other"));
});

test("without a limit nothing is refused", () => {
  const loop = createLoop();
  const admission = createAdmission({ maxCalls: undefined, clock: loop.clock });
  for (let i = 0; i < 5_000; i++) {
    assert.equal(admission.enter("other")?.moneyOnly, false);
    loop.work(100);
  }
});
