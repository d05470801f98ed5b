import assert from "node:assert/strict";
import { test } from "node:test";
import { Outbox } from "../../src/ledger/outbox.ts";
import { UnreadableRecord } from "../../src/ledger/record.ts";

/** A store that is away at first. */
function rig() {
  const states: string[] = [];
  const outbox = new Outbox((state) => void states.push(state));
  const made: number[] = [];
  const store = { away: true, refused: new Set<number>() };
  return {
    ...{ outbox, states, made, store },
    async add(n: number): Promise<void> {
      let isMade = false;
      const write = async () => {
        if (store.away || store.refused.has(n)) throw new Error(`${n} cannot be made`);
        if (!isMade) made.push(n);
        isMade = true;
      };
      await write().catch((error: unknown) => outbox.add(write, error));
    },
  };
}

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);

test("failed writes are made in their order once the store is back", async () => {
  const { outbox, states, made, store, add } = rig();
  for (const n of numbers(1_000)) await add(n);
  assert.deepEqual([made, states], [[], ["alone"]]);
  store.away = false;
  await outbox.flush();
  assert.deepEqual(made, numbers(1_000));
  assert.deepEqual([outbox.isBehind, states], [false, ["alone", "shared"]]);
});

test("failed writes are retried without a call of flush", async () => {
  const { outbox, made, store, add } = rig();
  await add(0);
  store.away = false;
  // The outbox's own timer does not keep the process alive.
  const alive = setInterval(() => {}, 1_000);
  while (outbox.isBehind) await new Promise((resolve) => setTimeout(resolve, 5));
  clearInterval(alive);
  assert.deepEqual(made, [0]);
});

test("a write that fails stays until it succeeds, and does not hold up the others", async () => {
  const { outbox, states, made, store, add } = rig();
  for (const n of numbers(3)) await add(n);
  store.away = false;
  store.refused.add(1);
  await assert.rejects(outbox.flush(), /1 cannot be made/);
  assert.deepEqual([made, states], [[0, 2], ["alone"]]);
  store.refused.clear();
  await outbox.flush();
  assert.deepEqual([made, outbox.isBehind], [[0, 2, 1], false]);
});

test("a write to a record that cannot be read is not kept", async () => {
  const { outbox, states, made, store, add } = rig();
  const error = new UnreadableRecord("payment:0");
  const unreadable = async () => {
    throw error;
  };
  outbox.add(unreadable, error);
  assert.deepEqual([outbox.isBehind, states], [false, []]);
  outbox.add(unreadable);
  await add(1);
  store.away = false;
  await outbox.flush();
  assert.deepEqual([made, states], [[1], ["alone", "shared"]]);
});

test("up to a hundred writes are under way at a time", async () => {
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
