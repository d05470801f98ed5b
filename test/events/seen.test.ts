import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Seen } from "../../src/events/seen.ts";

describe("seen", () => {
  it("remembers a key for `lastsMs` after it was first added", () => {
    const seen = new Seen({ lastsMs: 100, limit: 10 });
    seen.add("a", 0);
    seen.add("a", 50);
    seen.add("b", 60);
    seen.sweep(100);
    assert(seen.has("a"));
    seen.sweep(101);
    assert(!seen.has("a"));
    assert(seen.has("b"));
  });

  it("remembers only the newest keys, up to its limit", () => {
    const seen = new Seen({ lastsMs: 100, limit: 2 });
    for (const key of ["a", "b", "c"]) seen.add(key, 0);
    assert.deepEqual(
      ["a", "b", "c"].map((key) => seen.has(key)),
      [false, true, true],
    );
  });
});
