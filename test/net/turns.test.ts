import assert from "node:assert/strict";
import { test } from "node:test";
import { onePerTurn, spreadOverTurns } from "../../src/net/spread-over-turns.ts";
import { turnEnd } from "../../src/net/turn-end.ts";

test("a few tasks run at once, and more of them in later turns of the event loop", async () => {
  const ran: number[] = [];
  const inTurn = spreadOverTurns(3);
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
  const add = (from: number, to: number) => {
    for (let task = from; task <= to; task++) inTurn(() => ran.push(task));
  };
  add(1, 8);
  assert.deepEqual(ran, [1, 2, 3]);
  await turn();
  assert.deepEqual(ran, [1, 2, 3, 4, 5, 6]);
  add(9, 9);
  assert.equal(ran.length, 6, "a later task does not overtake");
  await turn();
  assert.deepEqual(ran, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
  await turn();
  await turn();
  add(10, 10);
  assert.equal(ran.at(-1), 10, "it begins anew when it had nothing to do");
});

test("tasks run in their order, one in each turn of the event loop", async () => {
  const ran: string[] = [];
  const so = () => ran.join(" ");
  const inTurn = onePerTurn();
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
  for (const name of ["first", "second", "third"]) inTurn(() => ran.push(name));
  assert.equal(so(), "");
  await turn();
  assert.equal(so(), "first");
  inTurn(() => ran.push("fourth"));
  await turn();
  assert.equal(so(), "first second");
  await turn();
  await turn();
  assert.equal(so(), "first second third fourth");
  inTurn(() => ran.push("later"));
  await turn();
  assert.ok(so().endsWith("later"), "it begins anew when it had nothing to do");
});

test("all waits of one turn resolve together at its end, the first one first", async () => {
  const ran: string[] = [];
  const wait = async (name: string) => {
    await turnEnd();
    ran.push(name);
    return name;
  };
  const turn = new Promise<void>((resolve) => setImmediate(resolve));
  const first = wait("first");
  process.nextTick(() => wait("second"));
  queueMicrotask(() => wait("third"));
  const fails = turnEnd().then(() => {
    throw new Error("its own");
  });
  const failed = assert.rejects(fails, /its own/);
  const last = wait("last");
  assert.deepEqual(ran, []);
  await turn;
  await first;
  await failed;
  assert.equal(await last, "last", "that one fails is nothing to the others");
  assert.deepEqual(ran.toSorted(), ["first", "last", "second", "third"]);
  assert.equal(ran[0], "first");
});

test("a wait that begins after the end of a turn resolves at the next end", async () => {
  await turnEnd();
  let ended = false;
  const next = turnEnd().then(() => {
    ended = true;
  });
  await Promise.resolve();
  assert.equal(ended, false);
  await next;
});
