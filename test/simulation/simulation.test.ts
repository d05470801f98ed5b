import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type Defect, defects, sqliteDefects } from "./defects.ts";
import { diagramOf } from "./diagram.ts";
import { runMany } from "./many.ts";
import { planOf } from "./plan.ts";
import { planting } from "./plant.ts";
import { forms, runPlan, runSeed, shrink } from "./run.ts";
import { testDefects, testKept } from "./suites.ts";
import { tableOf } from "./table.ts";

/** `npm run simulate` makes more of them. */
const histories = 500;

test(`no promise is broken in ${histories} histories`, async () => {
  const { figures, broken } = await runMany({ first: 1, histories, store: "memory" });
  const [first] = broken;
  const command = `npm run simulate -- --histories 1 --print --seed ${first?.seed}`;
  assert.deepEqual(first?.violations ?? [], [], command);
  // The histories tried enough.
  const { calls, charged, absences } = figures;
  assert.equal(figures.histories, histories);
  assert.ok(calls > histories && charged > histories / 4 && absences > histories / 10);
  const idle = Object.entries(figures.tried).filter(([, times]) => times < histories / 100);
  assert.deepEqual(idle, [], "each check had much to judge");
});

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

test("a finished history is garbage-collected", async () => {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  const over: WeakRef<object>[] = [];
  // In some of them gateways die; in others reconcilers pause when the history ends.
  for (let seed = 1; seed <= 10; seed++) {
    over.push(new WeakRef((await runSeed(seed)).history.calls));
  }
  let left = over.length;
  for (let tries = 0; left > 1 && tries < 20; tries++) {
    await setImmediate();
    collect();
    left = over.filter((history) => history.deref() !== undefined).length;
  }
  // The last history may still be referenced.
  assert.ok(left <= 1, `${left} of ${over.length} are kept`);
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
    const lying = { ...plan, disk: { flushesAfterMs: 5_000 } };
    for (const { check } of (await runPlan(lying, "sqlite")).violations) lost.add(check);
    const steps = plan.steps.map((step) =>
      step.do === "powerOff" ? { ...step, do: "kill" as const } : step,
    );
    assert.deepEqual((await runPlan({ ...lying, steps }, "sqlite")).violations, []);
  }
  assert.ok(lost.has("acknowledged, not in the log once"), [...lost].join());
});

test("a broken history is shrunk to the steps that break it", async () => {
  const [defect] = defects;
  assert.ok(defect);
  const { runSeed, shrink } = await planting(defect);
  let run = await runSeed(1);
  for (let seed = 2; run.violations.length === 0 && seed < 100; seed++) run = await runSeed(seed);
  const { plan, history, violations } = await shrink(run);
  assert.equal(violations[0]?.check, run.violations[0]?.check);
  assert.ok(
    plan.steps.length < run.plan.steps.length && plan.steps.length <= 5,
    JSON.stringify(plan.steps),
  );
  assert.match(diagramOf(history), /callers .*gateway-0 .*service/);
});

test("planting rejects a defect whose line is not in the code", async () => {
  const defect = { ...defects[0], line: "no such line" } as (typeof defects)[0];
  await assert.rejects(planting(defect), /has 0 times what is to be replaced/);
});

test("planting rejects a defect in a file that the simulation does not load anew", async () => {
  const into = (file: string, line: string) => planting({ ...defects[0], file, line } as Defect);
  const line = "export function sign(";
  await assert.rejects(
    into("wire/signature.ts", line),
    /wire\/signature.ts is loaded once for all/,
  );
  await assert.rejects(into("rpc/stream-path.ts", "class StreamAnswer {"), /does not load/);
  await assert.rejects(into("redis/none.lua", ""), /ENOENT/);
});

test("shrinking rejects a history in which nothing is broken", async () => {
  await assert.rejects(shrink(await runSeed(1)), /nothing is broken/);
});
