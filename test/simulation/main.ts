/**
 * Makes histories by machine, and tells which promises are broken in them.
 *
 *   npm run simulate -- [--histories <n>] [--seed <first>] [--store memory|sqlite|redis]
 *                       [--defect <name>] [--print]
 *
 * With `--print` each broken history is shrunk and printed as a diagram. With a defect (see defects.ts)
 * it stops at the first history that shows it.
 */
import { writeSync } from "node:fs";
import { parseArgs } from "node:util";
import { defects, redisDefects } from "./defects.ts";
import { diagramOf } from "./diagram.ts";
import { planting } from "./plant.ts";
import * as whole from "./run.ts";

const { values } = parseArgs({
  options: {
    histories: { type: "string", default: "1000" },
    seed: { type: "string", default: "1" },
    store: { type: "string", default: "memory" },
    defect: { type: "string" },
    print: { type: "boolean", default: false },
  },
});
const first = Number(values.seed);
const last = first + Number(values.histories) - 1;
const all = [...defects, ...redisDefects];
const defect = all.find(({ name }) => name === values.defect);
if (values.defect !== undefined && !defect) {
  throw new Error(`no such defect; there are:\n${all.map(({ name }) => name).join("\n")}`);
}
const { runSeed, shrink } = defect ? await planting(defect) : whole;

const say = (text: string) => writeSync(1, `${text}\n`);
const startedMs = performance.now();
const broken = new Map<string, number[]>();
let told = startedMs;
let [calls, posts, callbacks, shown, virtualMs] = [0, 0, 0, 0, 0];
for (let seed = first; seed <= last; seed++) {
  const run = await runSeed(seed, values.store);
  const { history, violations } = run;
  calls += history.calls.length;
  posts += history.posts.length;
  callbacks += history.callbacks.length;
  shown += history.shown.length;
  virtualMs += history.endedMs;
  for (const check of new Set(violations.map((violation) => violation.check))) {
    broken.set(check, [...(broken.get(check) ?? []), seed]);
  }
  if (violations.length > 0) {
    for (const { check, found } of violations) say(`seed ${seed}: ${check}: ${found}`);
    if (values.print) {
      const smallest = await shrink(run, values.store);
      say(JSON.stringify(smallest.plan));
      say(diagramOf(smallest.history));
      for (const { check, found } of smallest.violations) say(`${check}: ${found}`);
    }
    if (violations.some(({ check }) => defect?.brokenChecks.includes(check))) break;
  }
  if (performance.now() - told > 10_000) {
    told = performance.now();
    say(`${seed - first + 1} histories, ${[...broken.values()].flat().length} broken`);
  }
}
const seconds = (performance.now() - startedMs) / 1_000;
const count = last - first + 1;
await whole.forms[values.store]?.after?.();
say(
  `${count} histories on ${values.store} in ${seconds.toFixed(0)} s (${(count / seconds).toFixed(0)} a second): ${calls} calls, ${posts} requests that move money, ${callbacks} callbacks, ${shown} events shown, ${(virtualMs / 3_600_000).toFixed(1)} hours`,
);
for (const [check, seeds] of broken)
  say(`broken: ${check}: seeds ${seeds.slice(0, 20).join(", ")}`);
process.exitCode = broken.size > 0 ? 1 : 0;
