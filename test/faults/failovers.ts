/**
 * The long form of failovers.test.ts: every kind of fault on every topology, with each seed.
 * FAULT_SEEDS (default: 1,2,3,4,5), FAULT_TOPOLOGIES (default: alone,sentinel,cluster) and
 * FAULT_KINDS (a pattern for the names of the faults) select what runs.
 */
import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import { violationsOf } from "../simulation/checks.ts";
import { faults } from "./rig/faults.ts";
import { countsOf } from "./rig/history.ts";
import { runFault } from "./rig/run.ts";
import type { Topology } from "./rig/topologies.ts";

const seeds = (process.env.FAULT_SEEDS ?? "1,2,3,4,5").split(",").map(Number);
const topologies = (process.env.FAULT_TOPOLOGIES ?? "alone,sentinel,cluster").split(",");
const kinds = new RegExp(process.env.FAULT_KINDS ?? "");
const rows: string[] = [];

for (const kind of topologies as Topology["kind"][]) {
  describe(`three gateways on Redis: ${kind}`, () => {
    for (const [name, fault] of Object.entries(faults[kind])) {
      if (!kinds.test(name)) continue;
      for (const seed of seeds) {
        it(`${name}, seed ${seed}`, { timeout: 300_000 }, async (t) => {
          const { history, strayLines } = await runFault(kind, fault, seed);
          const found = violationsOf(history);
          const columns = [kind, name, seed, ...countsOf(history), found.length];
          rows.push(`| ${columns.join(" | ")} |`);
          t.diagnostic(rows.at(-1) ?? "");
          assert.deepEqual(found, []);
          assert.deepEqual(strayLines, []);
        });
      }
    }
  });
}

after(() => {
  console.log("| Redis | fault | seed | callbacks | 503 | payments | unknown | shown | broken |");
  console.log("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
  for (const row of rows) console.log(row);
});
