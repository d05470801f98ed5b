import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Defect } from "./defects.ts";
import { kept } from "./kept.ts";
import type { Plan } from "./plan.ts";
import { planting } from "./plant.ts";
import { runPlan, type StoreName } from "./run.ts";

/** Tests that the kept histories which a store can have break no promise. */
export function testKept(store: StoreName, isPossible: (plan: Plan) => boolean = () => true): void {
  describe(`a kept history breaks no promise, ${store}`, () => {
    for (const [name, plan] of Object.entries(kept)) {
      if (!isPossible(plan)) continue;
      test(name, async () => {
        assert.deepEqual((await runPlan(plan, store)).violations, []);
      });
    }
  });
}

/** Tests that each defect is found. @param tries how many seeds may be tried */
export function testDefects(defects: readonly Defect[], store: StoreName, tries: number): void {
  describe(`a planted defect breaks one of its checks, ${store}`, () => {
    for (const defect of defects) {
      test(defect.name, async () => {
        const { runSeed, runPlan } = await planting(defect);
        const { shownBy = 1, brokenChecks } = defect;
        // After any change of the code the defect may show in the history of another seed.
        const isShown = async (seed: number) => {
          const { violations } = await (typeof shownBy === "number"
            ? runSeed(seed === 0 ? shownBy : seed, store)
            : runPlan({ ...kept[shownBy], ...(seed > 0 && { seed }) }, store));
          return violations.some(({ check }) => brokenChecks.includes(check));
        };
        let seed = 0;
        while (seed < tries && !(await isShown(seed))) seed++;
        const command = `npm run simulate -- --store ${store} --defect ${JSON.stringify(defect.name)}`;
        assert.ok(seed < tries, command);
      });
    }
  });
}
