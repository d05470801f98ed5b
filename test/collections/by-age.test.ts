import assert from "node:assert/strict";
import { test } from "node:test";
import { ByAge } from "../../src/collections/by-age.ts";

function keysOf(map: ByAge<unknown>): string[] {
  const keys: string[] = [];
  map.fromOldest((key) => keys.push(key) > 0);
  return keys;
}

test("entries are in the order in which they were last set, whatever was deleted", () => {
  const map = new ByAge<number>();
  const model = new Map<string, number>();
  for (let n = 0; n < 2_000; n++) {
    const key = `k${(n * 7919) % 31}`;
    assert.equal(map.get(key), model.get(key));
    if (n % 3 === 0) {
      assert.equal(map.delete(key), model.delete(key));
    } else {
      model.delete(key);
      model.set(key, n);
      map.set(key, n);
    }
    assert.equal(map.size, model.size);
    assert.deepEqual(keysOf(map), [...model.keys()]);
  }
});

test("whoever goes through the entries may delete each, and stop", () => {
  const map = new ByAge<number>();
  for (const [value, key] of ["a", "b", "c", "d"].entries()) map.set(key, value);
  const seen: string[] = [];
  map.fromOldest((key, value) => {
    seen.push(`${key}${value}`);
    map.delete(key);
    return key !== "c";
  });
  assert.deepEqual(seen, ["a0", "b1", "c2"]);
  assert.deepEqual(keysOf(map), ["d"]);
});
