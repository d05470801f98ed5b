/** A worker process of many.ts: makes histories, one range at a time, until it is disconnected. */
import { defects, redisDefects, sqliteDefects } from "./defects.ts";
import { diagramOf } from "./diagram.ts";
import {
  addTo,
  type Broken,
  type Figures,
  noFigures,
  type Orders,
  type Range,
  type Told,
} from "./many.ts";
import { planting } from "./plant.ts";
import * as whole from "./run.ts";

if (!process.send) throw new Error("many.ts starts it");
const { store, print, ...orders }: Orders = JSON.parse(process.argv[2] ?? "{}");
const defect = [...defects, ...sqliteDefects, ...redisDefects].find(
  ({ name }) => name === orders.defect,
);
if (orders.defect !== undefined && !defect) throw new Error(`no such defect: ${orders.defect}`);
const { runSeed, shrink } = defect ? await planting(defect) : whole;
let isOver = false;
const make = async ({ first, last }: Range): Promise<void> => {
  const figures = noFigures();
  const broken: Broken[] = [];
  for (let seed = first; seed <= last && !isOver; seed++) {
    try {
      const { violations, ...run } = await runSeed(seed, store);
      addTo(figures, figuresOf(run));
      if (violations.length === 0) continue;
      broken.push(await lookedAt(seed));
      if (violations.some(({ check }) => defect?.brokenChecks.includes(check))) break;
    } catch (error) {
      const found = error instanceof Error ? (error.stack ?? error.message) : String(error);
      broken.push({ seed, violations: [{ check: "the simulation fails", found }] });
    }
  }
  // Ignore errors: the parent process may have ended.
  process.send?.({ figures, broken } satisfies Told, undefined, undefined, () => {});
};
/** Makes the same history again, now with stack traces in its errors. */
const lookedAt = async (seed: number): Promise<Broken> => {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 10;
  const run = await runSeed(seed, store);
  Error.stackTraceLimit = stackTraceLimit;
  const { violations } = run;
  if (!print) return { seed, violations };
  const smallest = await shrink(run, store);
  const drawing = [
    ...[JSON.stringify(smallest.plan), diagramOf(smallest.history)],
    ...smallest.violations.map(({ check, found }) => `${check}: ${found}`),
  ];
  return { seed, violations, drawing: drawing.join("\n") };
};

let working = Promise.resolve();
process.on("message", (range: Range) => {
  working = working.then(() => make(range));
});
process.once("disconnect", async () => {
  isOver = true;
  await working;
  await whole.forms[store]?.after?.();
});

function figuresOf({ history, tried }: Omit<whole.Run, "violations">): Figures {
  return {
    ...{ histories: 1, calls: history.calls.length, posts: history.posts.length },
    charged: history.posts.filter((post) => post.charged).length,
    ...{ callbacks: history.callbacks.length, shown: history.shown.length },
    ...{ absences: history.absences.length, virtualMs: history.endedMs },
    tried,
  };
}
