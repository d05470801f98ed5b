/**
 * Makes random histories, and prints which promises are broken in them.
 *
 *   npm run simulate -- [--histories <n>] [--seed <first>] [--store memory|sqlite|redis]
 *                       [--jobs <threads>] [--defect <name>] [--print]
 *
 * With `--print` each broken history is shrunk and printed as a diagram. With a defect (see
 * defects.ts) it stops at the first history that shows it.
 */
import { writeSync } from "node:fs";
import { parseArgs } from "node:util";
import { defectOf } from "./defects.ts";
import { type Figures, runMany } from "./many.ts";
import { forms, type StoreName } from "./run.ts";
import { seedsOf, tableOf } from "./table.ts";

const { values } = parseArgs({
  options: {
    histories: { type: "string", default: "1000" },
    seed: { type: "string", default: "1" },
    store: { type: "string", default: "memory" },
    jobs: { type: "string" },
    defect: { type: "string" },
    print: { type: "boolean", default: false },
  },
});
const { print } = values;
const store = values.store as StoreName;
if (!(store in forms)) throw new Error(`there is no store ${store}: ${Object.keys(forms)}`);
const wholeOf = (name: "histories" | "seed" | "jobs", text: string) => {
  const number = Number(text);
  if (/^\d+$/.test(text) && number > 0 && Number.isSafeInteger(number)) return number;
  throw new Error(`--${name} ${text}: not a whole number above 0`);
};
const first = wholeOf("seed", values.seed);
const histories = wholeOf("histories", values.histories);
const jobs = values.jobs === undefined ? undefined : wholeOf("jobs", values.jobs);
const defect = values.defect === undefined ? undefined : defectOf(values.defect);

const say = (text: string) => writeSync(1, `${text}\n`);
const stopping = new AbortController();
let wasStopped = false;
for (const name of ["SIGINT", "SIGTERM"] as const) {
  process.once(name, () => {
    wasStopped = true;
    stopping.abort();
  });
}
const startedMs = performance.now();
const secondsOf = () => (performance.now() - startedMs) / 1_000;
const rateOf = ({ histories, calls }: Figures) =>
  `${(histories / secondsOf()).toFixed(0)} histories and ${(calls / secondsOf()).toFixed(0)} calls a second`;
let told = startedMs;
let brokenSoFar = 0;
say(`${histories} histories on ${store} from seed ${first}`);
const { figures, broken } = await runMany({
  ...{ first, histories, store, jobs, defect: defect?.name, print, signal: stopping.signal },
  onBroken({ seed, violations, drawing }) {
    brokenSoFar++;
    for (const { check, found } of violations) say(`seed ${seed}: ${check}: ${found}`);
    if (drawing !== undefined) say(drawing);
    if (violations.some(({ check }) => defect?.brokenChecks.includes(check))) stopping.abort();
  },
  onFigures(figures) {
    if (performance.now() - told < 10_000) return;
    told = performance.now();
    say(`${figures.histories} histories, ${brokenSoFar} broken, ${rateOf(figures)}`);
  },
});
const { calls, posts, callbacks, shown, virtualMs } = figures;
say(
  `${figures.histories} histories on ${store} in ${secondsOf().toFixed(0)} s (${rateOf(figures)}): ${calls} calls, ${posts} requests that move money, ${callbacks} callbacks, ${shown} events shown, ${(virtualMs / 3_600_000).toFixed(1)} hours; ${broken.length} broken`,
);
const seeds = seedsOf(broken);
say(`\n${tableOf(figures.tried, seeds)}`);
for (const [check, all] of seeds) say(`broken: ${check}: seeds ${all.slice(0, 20).join(", ")}`);
process.exitCode = broken.length > 0 ? 1 : wasStopped ? 130 : 0;
