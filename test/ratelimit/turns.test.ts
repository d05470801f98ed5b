import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { keyOf, Turns } from "../../src/ratelimit/turns.ts";

const service = (name: string) => keyOf({ name });
const customer = (name: string) => keyOf({ name, customer: name });

/** Turns with these calls in order of arrival; each call is named by its caller and a number. */
function turnsOf(...calls: string[]) {
  const turns = new Turns<string>();
  for (const call of calls) turns.add(callerOf(call), call);
  return turns;
}

/** A customer's name begins with a `c`. */
function callerOf(call: string): string {
  const [name = ""] = call.split(" ");
  return name.startsWith("c") ? customer(name) : service(name);
}

function serve(turns: Turns<string>, count = Infinity): string[] {
  const served: string[] = [];
  for (let next = turns.first; next && served.length < count; next = turns.first) {
    served.push(next);
    turns.remove(callerOf(next), next, { served: true });
  }
  return served;
}

describe("turns", () => {
  it("go round the callers, and serve each caller's calls in order of arrival", () => {
    const turns = turnsOf("a 1", "a 2", "a 3", "b 1", "d 1", "d 2");
    assert.deepEqual(serve(turns), ["a 1", "b 1", "d 1", "a 2", "d 2", "a 3"]);
    assert.equal(turns.size, 0);
  });

  it("treat all customers together like one service", () => {
    const turns = turnsOf("c1 1", "c1 2", "c2 1", "a 1", "a 2", "a 3");
    assert.deepEqual(serve(turns), ["c1 1", "a 1", "c2 1", "a 2", "c1 2", "a 3"]);
  });

  it("are given up by a caller that leaves, which comes last when it returns", () => {
    const turns = turnsOf("a 1", "a 2", "b 1", "d 1", "d 2");
    turns.remove(callerOf("b 1"), "b 1", { served: false });
    assert.deepEqual(serve(turns, 2), ["a 1", "d 1"]);
    turns.add(callerOf("b 2"), "b 2");
    assert.deepEqual(serve(turns), ["a 2", "d 2", "b 2"]);
  });

  it("stay with a caller when one of its calls leaves", () => {
    const turns = turnsOf("a 1", "a 2", "b 1");
    turns.remove(callerOf("a 1"), "a 1", { served: false });
    turns.remove(callerOf("a 1"), "a 1", { served: false });
    assert.deepEqual(serve(turns), ["a 2", "b 1"]);
  });

  it("count the calls ahead: of other callers no more than their turns", () => {
    const turns = turnsOf("a 1", "a 2", "a 3", "b 1", "c1 1", "c1 2", "c2 1");
    assert.equal(turns.ahead(service("a"), 3), 3 + 1 + 3);
    assert.equal(turns.ahead(service("b"), 0), 2, "one of a, one of the customers");
    assert.equal(turns.ahead(service("new"), 0), 3);
    assert.equal(turns.ahead(customer("c2"), 0), 1 + 2 + 1);
  });

  it("list a service that waits behind many customers among the first", () => {
    const customers = Array.from({ length: 200 }, (_, nth) => `c${nth} 1`);
    const turns = turnsOf(...customers, "a 1");
    assert.equal(turns.callers[1]?.[0], service("a"));
    assert.equal(turns.callers.length, 201);
  });
});
