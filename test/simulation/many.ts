import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import type { Violation } from "./checks.ts";
import { addTried } from "./table.ts";

/** The stores in which the gateways of a simulation keep their state. */
export const storeNames = ["memory", "sqlite", "redis"] as const;
export type StoreName = (typeof storeNames)[number];

/** The settings that a worker process starts with. */
export interface Orders {
  readonly store: StoreName;
  /** The name of the defect that is planted into the code. */
  readonly defect?: string | undefined;
  /** Broken histories are shrunk and drawn. */
  readonly print?: boolean | undefined;
}

/** Totals of no histories yet; `tried` is how many each check judged, by its name. */
export function noFigures() {
  const tried: Record<string, number> = {};
  return {
    ...{ histories: 0, calls: 0, posts: 0, charged: 0, callbacks: 0, shown: 0 },
    ...{ absences: 0, virtualMs: 0, tried },
  };
}

export type Figures = ReturnType<typeof noFigures>;

export function addTo(to: Figures, { tried, ...more }: Figures): void {
  for (const name of Object.keys(more) as (keyof typeof more)[]) to[name] += more[name];
  addTried(to.tried, tried);
}

export interface Broken {
  readonly seed: number;
  readonly violations: readonly Violation[];
  /** The shrunk history as a diagram. */
  readonly drawing?: string | undefined;
}

/** What a worker answers to a range. */
export interface Told {
  readonly figures: Figures;
  readonly broken: readonly Broken[];
}

/** A range of seeds. */
export interface Range {
  readonly first: number;
  readonly last: number;
}

export interface Many extends Orders {
  /** The first seed. */
  readonly first: number;
  readonly histories: number;
  /** Processes that make them; by default as many as there are processors. */
  readonly jobs?: number | undefined;
  readonly onBroken?: (broken: Broken) => void;
  readonly onFigures?: (figures: Figures) => void;
  readonly onProcess?: (worker: ChildProcess) => void;
  /** A process that sends nothing for this long is killed, in milliseconds. */
  readonly silentMs?: number;
  /** Ends it early. */
  readonly signal?: AbortSignal;
}

export interface Result {
  readonly figures: Figures;
  /** In the order of their seeds. */
  readonly broken: readonly Broken[];
  /** All seeds before this one were tried. */
  readonly nextSeed: number;
}

/**
 * Makes the histories of many seeds in processes of their own, where nothing slows them down, such
 * as a test runner that tracks each promise.
 */
export async function runMany(options: Many): Promise<Result> {
  const { first, histories, jobs = availableParallelism(), signal, silentMs = 300_000 } = options;
  const figures = noFigures();
  const broken: Broken[] = [];
  // Histories on Redis take longer.
  const size = options.store === "redis" ? 2 : 20;
  const end = first + histories;
  const ranges = Array.from({ length: Math.ceil(histories / size) }, (_, n): Range => {
    const from = first + n * size;
    return { first: from, last: Math.min(from + size, end) - 1 };
  });
  const untried = new Set(ranges);
  const found = (one: Broken) => {
    broken.push(one);
    options.onBroken?.(one);
  };
  /** Gives one worker process a range after the other, until none is left. */
  const work = async (next: Iterator<Range>) => {
    const worker = startWorker(options);
    options.onProcess?.(worker);
    const ended = endOf(worker);
    const leave = () => worker.connected && worker.disconnect();
    signal?.addEventListener("abort", leave, { once: true });
    for (let given = next.next(); !given.done && !signal?.aborted; given = next.next()) {
      const range = given.value;
      // Ignore errors: the worker may have exited, which `endOf` reports.
      worker.send(range, () => {});
      const silence = setTimeout(() => worker.kill("SIGKILL"), silentMs);
      const answer = once(worker, "message").then(([told]) => told as Told);
      const told = await Promise.race([answer, ended]);
      clearTimeout(silence);
      if (typeof told === "string") {
        // Not all of its seeds were tried: it stays in `untried`.
        const check = "the simulation does not end";
        const lost = { check, found: `seeds ${range.first} to ${range.last}: ${told}` };
        if (!signal?.aborted) found({ seed: range.first, violations: [lost] });
        break;
      }
      untried.delete(range);
      addTo(figures, told.figures);
      for (const one of told.broken) found(one);
      options.onFigures?.(figures);
    }
    leave();
    signal?.removeEventListener("abort", leave);
    await ended;
  };
  const next = ranges.values();
  await Promise.all(Array.from({ length: Math.min(jobs, ranges.length) }, () => work(next)));
  const [left] = untried;
  return {
    figures,
    broken: broken.toSorted((a, b) => a.seed - b.seed),
    nextSeed: left?.first ?? end,
  };
}

function startWorker({ store, defect, print }: Orders): ChildProcess {
  const orders: Orders = { store, defect, print };
  return fork(new URL("worker.ts", import.meta.url), [JSON.stringify(orders)], {
    // Most objects of a history are garbage when it ends; stack traces are not needed.
    execArgv: ["--max-semi-space-size=32", "--stack-trace-limit=0"],
    // SIGINT from the terminal does not reach the worker: it ends after its current history.
    detached: true,
  });
}

/** @returns why a process ended */
async function endOf(worker: ChildProcess): Promise<string> {
  const [code, signal] = await once(worker, "exit");
  return signal ?? `exit code ${code}`;
}
