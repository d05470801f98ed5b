import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { defects, sqliteDefects } from "./defects.ts";
import { diagramOf } from "./diagram.ts";
import { runMany } from "./many.ts";
import { planOf } from "./plan.ts";
import { forms, runPlan, runSeed } from "./run.ts";
import { testDefects, testKept } from "./suites.ts";
import { tableOf } from "./table.ts";

/** `npm run simulate` makes more of them. */
for (const [store, histories] of [
  ["memory", 500],
  ["sqlite", 200],
] as const) {
  test(`no promise is broken in ${histories} histories on ${store}`, async () => {
    const { figures, broken } = await runMany({ first: 1, histories, store });
    const [first] = broken;
    const command = `npm run simulate -- --store ${store} --histories 1 --print --seed ${first?.seed}`;
    assert.deepEqual(first?.violations ?? [], [], command);
    // The histories tried enough.
    const { calls, charged, absences } = figures;
    assert.equal(figures.histories, histories);
    assert.ok(calls > histories && charged > histories / 4 && absences > histories / 10);
    if (store !== "memory") return;
    const idle = Object.entries(figures.tried).filter(([, times]) => times < histories / 150);
    assert.deepEqual(idle, [], "each check had much to judge");
  });
}

test("docs/promises.md has a row for each check, under its promise", async () => {
  const page = await readFile(new URL("../../docs/promises.md", import.meta.url), "utf8");
  for (const row of tableOf({}, new Map()).split("\n").slice(2)) {
    const expected = row.split(" | ").slice(0, 3).join(" | ");
    assert.ok(page.includes(`\n${expected} |`), expected);
  }
});

testKept("memory");
testKept("sqlite", ({ replicas }) => replicas === 1);

test("a seed makes the same history each time", async () => {
  for (const seed of [11, 12, 13]) {
    const [first, again] = [await runSeed(seed), await runSeed(seed)];
    assert.deepEqual(again.history, first.history);
    assert.equal(diagramOf(again.history), diagramOf(first.history));
  }
});

testDefects(defects, "memory", 400);
testDefects(sqliteDefects, "sqlite", 400);

test("a power failure loses what a disk that lies has not written, and nothing else", async () => {
  const lost = new Set<string>();
  let tries = 0;
  for (let seed = 1; tries < 10; seed++) {
    const plan = planOf(seed, forms.sqlite);
    if (!plan.steps.some((step) => step.do === "powerOff")) continue;
    tries++;
    assert.deepEqual((await runPlan(plan, "sqlite")).violations, []);
    const lying = { ...plan, flushesAfterMs: 5_000 };
    for (const { check } of (await runPlan(lying, "sqlite")).violations) lost.add(check);
    const steps = plan.steps.map((step) =>
      step.do === "powerOff" ? { ...step, do: "kill" as const } : step,
    );
    assert.deepEqual((await runPlan({ ...lying, steps }, "sqlite")).violations, []);
  }
  assert.ok(lost.has("acknowledged, not in the log once"), [...lost].join());
});
