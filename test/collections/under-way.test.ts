import assert from "node:assert/strict";
import { test } from "node:test";
import { getHeapSpaceStatistics } from "node:v8";
import { ByAge } from "../../src/collections/by-age.ts";
import { UnderWay } from "../../src/collections/under-way.ts";
import { collect } from "../collect.ts";

test("UnderWay holds the members that have not left, in whatever order they leave", () => {
  const all = new UnderWay<string>();
  const [a, b, c, d] = ["a", "b", "c", "d"].map((name) => all.add(name));
  assert.equal(all.size, 4);
  b?.leave();
  assert.deepEqual([...all].sort(), ["a", "c", "d"]);
  b?.leave();
  d?.leave();
  assert.deepEqual([all.size, b?.hasLeft, c?.hasLeft], [2, true, false]);
  const e = all.add("e");
  a?.leave();
  c?.leave();
  assert.deepEqual([...all], ["e"]);
  e.leave();
  assert.deepEqual([all.size, [...all]], [0, []]);
});

test("iteration skips members that leave or are added meanwhile", () => {
  const all = new UnderWay<number>();
  const members = [0, 1, 2, 3].map((number) => all.add(number));
  const seen: number[] = [];
  for (const number of all) {
    seen.push(number);
    if (number === 1) members[2]?.leave();
    members[number]?.leave();
    if (number === 0) all.add(4);
  }
  assert.deepEqual(seen, [0, 1, 3]);
  assert.deepEqual([...all], [4]);
});

const mebibyte = 1024 * 1024;

/** MiB by which V8's old space grows over 10,000 calls of 10 KiB, with 64 under way at a time. */
function leftBehind(come: (call: object, name: string) => () => void): number {
  const old = () =>
    getHeapSpaceStatistics().find(({ space_name }) => space_name === "old_space")
      ?.space_used_size ?? 0;
  const underWay: (() => void)[] = [];
  const once = (at: number) => {
    underWay.push(come(new Array(1_280).fill(at), `call-${at}`));
    if (underWay.length > 64) underWay.shift()?.();
    if (at % 100 === 99) collect({ type: "minor" });
  };
  for (let at = 0; at < 1_000; at++) once(at);
  collect();
  const before = old();
  for (let at = 1_000; at < 11_000; at++) once(at);
  return (old() - before) / mebibyte;
}

test("minor garbage collections free members that left, but not those of a Set", () => {
  const all = new UnderWay<object>();
  const ofList = leftBehind((call) => {
    const member = all.add(call);
    return () => member.leave();
  });
  const named = new ByAge<object>();
  const ofNames = leftBehind((call, name) => {
    named.set(name, call);
    return () => void named.delete(name);
  });
  const set = new Set<object>();
  const ofSet = leftBehind((call) => {
    set.add(call);
    return () => set.delete(call);
  });
  const left = JSON.stringify({ ofList, ofNames, ofSet });
  // Far less than the size of all calls: V8 may happen to collect the old space as well.
  assert.ok(ofSet > 5, left);
  assert.ok(ofList < ofSet / 3, left);
  assert.ok(ofNames < ofSet / 3, left);
});
