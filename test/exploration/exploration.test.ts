import assert from "node:assert/strict";
import { test } from "node:test";
import { type Defect, defects } from "./defects.ts";
import { runAll } from "./run.ts";
import { scenes } from "./scenes.ts";

/**
 * Of a world at most; `npm run explore` goes through more. Those with cancellations have seven times as
 * many ledgers, and a state of theirs takes three times as long.
 */
const maxOf = (world: string) => (world.includes("cancelled") ? 250_000 : 2_200_000);

const done = await runAll([
  ...scenes.map(({ name }) => ({ scene: name, max: maxOf(name) })),
  ...defects.map(({ scene, breaks }) => ({ scene, breaks, max: 500_000 })),
]);

test("no promise is broken in any state of the small worlds", () => {
  const worlds = done.filter(({ task }) => task.breaks === undefined);
  assert.deepEqual(
    worlds.flatMap(({ task, broken }) => (broken ? [{ ...broken, task }] : [])),
    [],
  );
  const states = worlds.reduce((sum, one) => sum + one.states, 0);
  assert.ok(states >= 10_000_000, `${states} states`);
  for (const { task, ends } of worlds) assert.ok(ends > 100, `${task.scene}: ${ends} ends`);
});

const foundOf = ({ scene, breaks }: Pick<Defect, "scene" | "breaks">) =>
  done.find(({ task }) => task.scene === scene && task.breaks === breaks);

test("each planted defect is found by the check that it breaks", () => {
  for (const defect of defects) {
    const found = foundOf(defect);
    assert.ok(
      found?.broken?.promise.startsWith(defect.breaks),
      `${defect.scene}: ${defect.breaks}`,
    );
  }
});

test("a broken promise is told as the shortest story", () => {
  const [locks] = defects;
  const story = ["call 0 begins", "call 0 is sent", "call 1 begins", "call 1 is sent"];
  assert.deepEqual(foundOf(locks!)?.broken?.story, story);
});
