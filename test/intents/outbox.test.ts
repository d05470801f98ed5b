import assert from "node:assert/strict";
import { test } from "node:test";
import { Outbox } from "../../src/intents/outbox.ts";

/** A store that is away at first. */
function rig() {
  const states: string[] = [];
  const outbox = new Outbox((state) => void states.push(state));
  const made: number[] = [];
  const store = { away: true, refused: new Set<number>() };
  return {
    ...{ outbox, states, made, store },
    add: (n: number) =>
      outbox.write(async () => {
        if (store.away || store.refused.has(n)) throw new Error(`${n} cannot be made`);
        made.push(n);
      }),
  };
}

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);

test("what cannot be written is written once the store is back, in its order", async () => {
  const { outbox, states, made, store, add } = rig();
  for (const n of numbers(1_000)) await add(n);
  assert.deepEqual([made, states], [[], ["alone"]]);
  store.away = false;
  await outbox.flush();
  assert.deepEqual(made, numbers(1_000));
  assert.deepEqual([outbox.isEmpty, states], [true, ["alone", "shared"]]);
  await add(1_000);
  assert.equal(made.at(-1), 1_000, "and then at once");
});

test("by itself, without anybody asking", async () => {
  const { outbox, made, store, add } = rig();
  await add(0);
  store.away = false;
  // Its own timer keeps no process alive.
  const alive = setInterval(() => {}, 1_000);
  while (!outbox.isEmpty) await new Promise((resolve) => setTimeout(resolve, 5));
  clearInterval(alive);
  assert.deepEqual(made, [0]);
});

test("what fails stays until it is made, and holds up none that are under way", async () => {
  const { outbox, states, made, store, add } = rig();
  for (const n of numbers(3)) await add(n);
  store.away = false;
  store.refused.add(1);
  await assert.rejects(outbox.flush(), /1 cannot be made/);
  assert.deepEqual([made, states], [[0, 2], ["alone"]]);
  store.refused.clear();
  await outbox.flush();
  assert.deepEqual([made, outbox.isEmpty], [[0, 2, 1], true]);
});

test("many are written at once", async () => {
  const { outbox, store } = rig();
  let [underWay, most] = [0, 0];
  const write = async () => {
    if (store.away) throw new Error("away");
    most = Math.max(most, ++underWay);
    await new Promise((resolve) => setImmediate(resolve));
    underWay--;
  };
  for (const _ of numbers(500)) outbox.add(() => write());
  store.away = false;
  await outbox.flush();
  assert.equal(most, 100);
});
