import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { Deque } from "../../src/collections/deque.ts";

describe("deque", () => {
  it("behaves like a list that grows at its end and shrinks at its front, or loses an item", () => {
    // An item is added, or the first of all is removed.
    const step = fc.oneof(fc.nat(5), fc.constant("shift"));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100, size: "max" }), (steps) => {
        const deque = new Deque<number>();
        let list: number[] = [];
        for (const value of steps) {
          if (typeof value === "string") {
            assert.equal(deque.shift(), list[0]);
            list = list.slice(1);
          } else {
            deque.push(value);
            list.push(value);
          }
          assert.equal(deque.length, list.length);
          for (const index of [-1, 0, 1, list.length - 1, list.length]) {
            assert.equal(deque.at(index), list[index]);
          }
          assert.deepEqual(deque.slice(-2, 3), list.slice(0, 3));
          assert.deepEqual(deque.slice(1, list.length), list.slice(1));
        }
      }),
    );
  });

  it("finds the index of the first item that matches", () => {
    const deque = new Deque<number>();
    for (let i = 0; i < 100; i++) deque.push(i * 2);
    for (let i = 0; i < 50; i++) deque.shift();
    assert.equal(
      deque.findFirst((item) => item > 120),
      11,
    );
    assert.equal(
      deque.findFirst(() => true),
      0,
    );
    assert.equal(
      deque.findFirst(() => false),
      50,
    );
  });
});
