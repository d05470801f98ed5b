import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import { withoutRedis } from "../redis/server.ts";
import { violationsOf } from "../simulation/checks.ts";
import { faults } from "./rig/faults.ts";
import { countsOf } from "./rig/history.ts";
import { runFault } from "./rig/run.ts";
import type { Topology } from "./rig/topologies.ts";

/**
 * FAULTS=long runs every kind of fault on every topology, with each seed. FAULT_SEEDS (default:
 * 1,2,3,4,5), FAULT_TOPOLOGIES (default: alone,sentinel,cluster) and FAULT_KINDS (a pattern for the
 * names of the faults) select what runs.
 */
const { FAULTS, FAULT_SEEDS, FAULT_TOPOLOGIES, FAULT_KINDS } = process.env;
const seeds = (FAULT_SEEDS ?? "1,2,3,4,5").split(",").map(Number);
const topologies = (FAULT_TOPOLOGIES ?? "alone,sentinel,cluster").split(",");
const kinds = new RegExp(FAULT_KINDS ?? "");

interface Case {
  readonly kind: Topology["kind"];
  readonly name: string;
  readonly seed: number;
}

const short: readonly Case[] = [
  { kind: "sentinel", name: "primary killed, a Sentinel frozen", seed: 0 },
  { kind: "cluster", name: "primary killed", seed: 1 },
  { kind: "alone", name: "a gateway killed", seed: 0 },
];
const long = (topologies as Topology["kind"][]).flatMap((kind) =>
  Object.keys(faults[kind])
    .filter((name) => kinds.test(name))
    .flatMap((name) => seeds.map((seed): Case => ({ kind, name, seed }))),
);
const cases = FAULTS === "long" ? long : short;
/** The short form has a load that leaves the machine time for other tests. */
const everyMs = FAULTS === "long" ? undefined : 60;

describe("three gateways through a fault", { skip: withoutRedis }, () => {
  const rows: string[] = [];
  after(() => {
    console.log("| Redis | fault | seed | callbacks | 503 | payments | unknown | shown | broken |");
    console.log("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (const row of rows) console.log(row);
  });

  for (const { kind, name, seed } of cases) {
    const title = `lose nothing, and all come back: ${kind}, ${name}, seed ${seed}`;
    it(title, { timeout: 280_000 }, async () => {
      const fault = faults[kind][name];
      assert(fault, "there is no such fault");
      const { history, strayLines } = await runFault(kind, fault, seed, everyMs);
      const { callbacks, posts, shown } = history;
      const found = violationsOf(history);
      rows.push(`| ${[kind, name, seed, ...countsOf(history), found.length].join(" | ")} |`);
      assert(callbacks.length > 40 && posts.length > 20, "the control: there was load");
      assert(shown.length > callbacks.length, "the control: there were watchers");
      assert.deepEqual(found, []);
      assert.deepEqual(strayLines, []);
    });
  }
});
