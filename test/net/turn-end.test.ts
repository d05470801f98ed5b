import assert from "node:assert/strict";
import { test } from "node:test";
import { turnEnd } from "../../src/net/turn-end.ts";

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
