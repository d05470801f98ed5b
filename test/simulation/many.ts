import { availableParallelism } from "node:os";
import { workerData } from "node:worker_threads";
import { doTasks, inThreads } from "../in-threads.ts";
import type { Violation } from "./checks.ts";
import { defectOf } from "./defects.ts";
import { diagramOf } from "./diagram.ts";
import { planting } from "./plant.ts";
import * as whole from "./run.ts";
import { addTried } from "./table.ts";

/** What all threads make histories of. */
interface Orders {
  readonly store: whole.StoreName;
  /** The name of the defect that is planted into the code. */
  readonly defect?: string | undefined;
  /** Broken histories are shrunk and drawn. */
  readonly print?: boolean | undefined;
}

export type Figures = ReturnType<typeof figuresOf>;

interface Broken {
  readonly seed: number;
  readonly violations: readonly Violation[];
  /** The shrunk history as a diagram. */
  readonly drawing?: string | undefined;
}

/** What came of a range of seeds. */
interface Told {
  readonly figures: readonly Figures[];
  readonly broken: readonly Broken[];
}

interface Many extends Orders {
  /** The first seed. */
  readonly first: number;
  readonly histories: number;
  /** Threads that make them; by default as many as there are processors. */
  readonly jobs?: number | undefined;
  readonly onBroken?: (broken: Broken) => void;
  readonly onFigures?: (figures: Figures) => void;
  /** Ends it early. */
  readonly signal?: AbortSignal;
}

/** Makes the histories of many seeds. @returns the broken ones in the order of their seeds */
export async function runMany(options: Many) {
  const { first, histories, jobs = availableParallelism(), signal } = options;
  const { store, defect, print } = options;
  // Histories on Redis take longer.
  const size = store === "redis" ? 2 : 20;
  const seeds = Array.from({ length: histories }, (_, n) => first + n);
  const ranges = Array.from({ length: Math.ceil(histories / size) }, (_, n) =>
    seeds.slice(n * size, (n + 1) * size),
  );
  const totals: Figures = { ...none, tried: {} };
  const broken: Broken[] = [];
  await inThreads<readonly number[], Told>(import.meta.url, ranges, {
    ...{ threads: Math.min(jobs, ranges.length), signal },
    workerData: { store, defect, print } satisfies Orders,
    onDone(told) {
      for (const { tried, ...figures } of told.figures) {
        for (const name of Object.keys(none) as (keyof typeof none)[]) {
          totals[name] += figures[name];
        }
        addTried(totals.tried, tried);
      }
      broken.push(...told.broken);
      for (const one of told.broken) options.onBroken?.(one);
      options.onFigures?.(totals);
    },
  });
  return { figures: totals, broken: broken.toSorted((a, b) => a.seed - b.seed) };
}

const none = {
  ...{ histories: 0, calls: 0, posts: 0, charged: 0, callbacks: 0, shown: 0 },
  ...{ absences: 0, virtualMs: 0 },
};

function figuresOf({ history, tried }: Pick<whole.Run, "history" | "tried">) {
  return {
    ...{ histories: 1, calls: history.calls.length, posts: history.posts.length },
    charged: history.posts.filter((post) => post.charged).length,
    ...{ callbacks: history.callbacks.length, shown: history.shown.length },
    ...{ absences: history.absences.length, virtualMs: history.endedMs },
    tried: { ...tried },
  };
}

if (workerData) {
  const { store, print, ...orders }: Orders = workerData;
  // Most objects of a history are garbage when it ends; stack traces are not needed.
  Error.stackTraceLimit = 0;
  const defect = orders.defect === undefined ? undefined : defectOf(orders.defect);
  const { runSeed, shrink } = defect ? await planting(defect) : whole;

  /** Makes the same history again, now with stack traces in its errors. */
  const lookedAt = async (seed: number): Promise<Broken> => {
    Error.stackTraceLimit = 10;
    const run = await runSeed(seed, store);
    Error.stackTraceLimit = 0;
    const { violations } = run;
    if (!print) return { seed, violations };
    const smallest = await shrink(run, store);
    const drawing = [
      ...[JSON.stringify(smallest.plan), diagramOf(smallest.history)],
      ...smallest.violations.map(({ check, found }) => `${check}: ${found}`),
    ];
    return { seed, violations, drawing: drawing.join("\n") };
  };
  const make = async (seeds: readonly number[]): Promise<Told> => {
    const [figures, broken]: [Figures[], Broken[]] = [[], []];
    for (const seed of seeds) {
      try {
        const run = await runSeed(seed, store);
        figures.push(figuresOf(run));
        if (run.violations.length === 0) continue;
        broken.push(await lookedAt(seed));
        if (run.violations.some(({ check }) => defect?.brokenChecks.includes(check))) break;
      } catch (error) {
        const found = error instanceof Error ? (error.stack ?? error.message) : String(error);
        broken.push({ seed, violations: [{ check: "the simulation fails", found }] });
      }
    }
    return { figures, broken };
  };
  doTasks(make, async () => whole.forms[store].after?.());
}
