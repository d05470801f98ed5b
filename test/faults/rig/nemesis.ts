/**
 * Runs random faults for a given time: in each round the seed picks one to three of a topology's
 * faults, which run one after another.
 *
 *   npm run nemesis -- --topology alone|sentinel|cluster [--minutes 60] [--seed 1]
 */
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { seeded } from "../../random.ts";
import { judge, type Violation } from "../../simulation/checks.ts";
import { addTried, seedsOf, tableOf } from "../../simulation/table.ts";
import { type Fault, faults } from "./faults.ts";
import { countsOf } from "./history.ts";
import { runFault } from "./run.ts";
import { type Topology, untilWhole } from "./topologies.ts";

const { values } = parseArgs({
  options: {
    topology: { type: "string", default: "sentinel" },
    minutes: { type: "string", default: "60" },
    seed: { type: "string", default: "1" },
  },
});
const kind = values.topology as Topology["kind"];
const all = Object.entries(faults[kind] ?? {});
const minutes = Number(values.minutes);
const first = Number(values.seed);
if (all.length === 0) throw new Error(`there is no topology ${kind}`);
if (!(minutes > 0)) throw new Error(`--minutes ${values.minutes}: not a number above 0`);
if (!Number.isSafeInteger(first)) throw new Error(`--seed ${values.seed}: not a whole number`);

const startedMs = performance.now();
const minutesOf = () => (performance.now() - startedMs) / 60_000;
const totals = [0, 0, 0, 0, 0];
const broken: { seed: number; violations: Violation[] }[] = [];
const allTried: Record<string, number> = {};
const failed: number[] = [];
let rounds = 0;
let faultsDone = 0;

for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => end(130));
console.log("| Redis | seed | faults | callbacks | 503 | payments | unknown | shown | broken |");
console.log("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
for (let seed = first; minutesOf() < minutes; seed++) {
  const random = seeded(seed);
  const picked = Array.from({ length: 1 + Math.floor(random() * 3) }, () => {
    return all[Math.floor(random() * all.length)] as (typeof all)[0];
  });
  const names = picked.map(([name]) => name).join("; ");
  try {
    const { history, strayLines } = await runFault(kind, oneAfterAnother(picked), seed);
    const { violations, tried } = judge(history);
    for (const found of strayLines) violations.push({ check: "past the log", found });
    addTried(allTried, tried);
    const counts = countsOf(history);
    for (const [at, count] of counts.entries()) totals[at] = (totals[at] ?? 0) + count;
    rounds++;
    faultsDone += picked.length;
    if (violations.length > 0) broken.push({ seed, violations });
    console.log(`| ${[kind, seed, names, ...counts, violations.length].join(" | ")} |`);
    for (const { check, found } of violations) console.log(`seed ${seed}: ${check}: ${found}`);
  } catch (error) {
    failed.push(seed);
    console.log(`seed ${seed} (${names}) did not come to its end: ${error}`);
  }
}
end(broken.length + failed.length > 0 ? 1 : 0);

/**
 * The promises hold for one fault at a time: before the next fault, waits until all replicas are in
 * sync again.
 */
function oneAfterAnother(picked: readonly (readonly [string, Fault])[]): Fault {
  return async (topology, random, beside) => {
    for (const [at, [, fault]] of picked.entries()) {
      if (at > 0) {
        await delay(500 + random() * 2_000);
        await topology.mend();
        await untilWhole(topology);
        await delay(random() * 1_000);
      }
      await fault(topology, random, beside);
    }
  };
}

function end(code: number): never {
  const told = `${rounds} rounds with ${faultsDone} faults in ${minutesOf().toFixed(1)} minutes`;
  const counts = ["callbacks", "503", "payments", "in doubt", "events shown"]
    .map((name, at) => `${totals[at]} ${name}`)
    .join(", ");
  console.log(`${kind}, from seed ${first}: ${told}: ${counts}; ${broken.length} broken`);
  console.log(`\n${tableOf(allTried, seedsOf(broken))}`);
  for (const [check, seeds] of seedsOf(broken)) {
    console.log(`broken: ${check}: seeds ${seeds.join(", ")}`);
  }
  if (failed.length > 0) console.log(`not come to their end: seeds ${failed.join(", ")}`);
  process.exit(code);
}
