import assert from "node:assert/strict";
import { test } from "node:test";
import { createPenalties } from "../../src/net/penalties.ts";

function rig(random = () => 1) {
  const clock = { nowMs: 0 };
  return { clock, penalties: createPenalties(() => clock.nowMs, random) };
}

const cut = (times: number, { penalties }: ReturnType<typeof rig>, address = "a") => {
  for (let i = 0; i < times; i++) penalties.add(address);
};

test("each cut delays the next connection from its address more, up to a second", () => {
  const attacked = rig();
  assert.equal(attacked.penalties.delayMs("a"), 0);
  cut(1, attacked);
  assert.equal(attacked.penalties.delayMs("a"), 25);
  cut(3, attacked);
  assert.equal(attacked.penalties.delayMs("a"), 100);
  cut(1_000, attacked);
  assert.equal(attacked.penalties.delayMs("a"), 1_000);
  assert.equal(attacked.penalties.delayMs("b"), 0, "another address does not pay");
});

test("the delay after cuts decays with time", () => {
  const attacked = rig();
  cut(8, attacked);
  attacked.clock.nowMs += 10_000;
  assert.equal(attacked.penalties.delayMs("a"), 73);
  attacked.clock.nowMs += 60_000;
  assert.equal(attacked.penalties.delayMs("a"), 0);
});

test("a delay is shortened at random by up to half", () => {
  const attacked = rig(() => 0);
  cut(8, attacked);
  assert.equal(attacked.penalties.delayMs("a"), 100, "half of the most that it may be");
});

test("beyond ten thousand addresses, the one with the oldest cut is forgotten", () => {
  const attacked = rig();
  for (let i = 0; i < 10_000; i++) cut(1, attacked, `${i}`);
  cut(1, attacked, "0");
  cut(1, attacked, "one more");
  assert.equal(attacked.penalties.delayMs("0"), 50);
  assert.equal(attacked.penalties.delayMs("1"), 0);
  assert.equal(attacked.penalties.delayMs("2"), 25);
});
