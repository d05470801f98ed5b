import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { checks, violationsOf } from "./rig/checks.ts";
import { type History, seeded } from "./rig/history.ts";

/** A run in which all went well. */
const sound: History = {
  callbacks: [
    { id: "c-1", answers: [200] },
    { id: "c-2", answers: [503, 503, 200] },
  ],
  payments: [
    { externalId: "a", key: "k", answers: ["unknown", "paid"] },
    { externalId: "b", answers: ["refused"] },
    { externalId: "c", answers: ["unknown"] },
  ],
  arrivals: new Map([
    ["a", 1],
    ["c", 1],
  ]),
  shown: [
    { watcher: "w", cursor: "1", callback: "c-1" },
    { watcher: "w", cursor: "2" },
    { watcher: "w", cursor: "3", callback: "c-2" },
    { watcher: "v", cursor: "3", callback: "c-2" },
  ],
  refusedCursors: [{ watcher: "w", cursor: "0" }],
  log: [{ cursor: "1", callback: "c-1" }, { cursor: "2" }, { cursor: "3", callback: "c-2" }],
  unknown: [{ externalId: "c", settled: true }],
  gateways: [{ name: "gateway-0", back: true }],
};

/** What a planted error must be found by, and nothing but what follows from it. */
const planted: Readonly<Record<string, Partial<History>>> = {
  "acknowledged but not in the log": {
    callbacks: [...sound.callbacks, { id: "c-3", answers: [503, 200] }],
  },
  "key sent twice": { arrivals: new Map([...sound.arrivals, ["a", 2]]) },
  "charged after a definite failure": { arrivals: new Map([...sound.arrivals, ["b", 1]]) },
  "shown and then gone": { shown: [{ watcher: "w", cursor: "4" }] },
  "one callback under two cursors": {
    log: [...sound.log, { cursor: "4", callback: "c-2" }],
    shown: [],
  },
  "shown twice or out of order": {
    shown: [
      { watcher: "w", cursor: "3" },
      { watcher: "w", cursor: "2" },
    ],
  },
  "left out": {
    shown: [
      { watcher: "w", cursor: "1" },
      { watcher: "w", cursor: "3" },
    ],
  },
  "valid cursor refused": { refusedCursors: [{ watcher: "w", cursor: "2" }] },
  "unknown never settled": { unknown: [{ externalId: "c", settled: false }] },
  "gateway that does not come back": { gateways: [{ name: "gateway-0", back: false }] },
};

describe("the checker of histories", () => {
  it("finds nothing in a sound one", () => {
    assert.deepEqual(violationsOf(sound), []);
  });

  for (const name of Object.keys(checks)) {
    it(`finds: ${name}`, () => {
      const errors = planted[name];
      assert(errors, "no error is planted for it");
      const found = violationsOf({ ...sound, ...errors });
      assert.equal(found.length, 1, found.join("\n"));
      assert(found[0]?.startsWith(`${name}: `), found[0]);
    });
  }

  it("is given the same numbers for the same seed", () => {
    const draw = (seed: number) => Array.from({ length: 5 }, seeded(seed));
    assert.deepEqual(draw(7), draw(7));
    assert.notDeepEqual(draw(7), draw(8));
  });
});
