import { type ChildProcess, fork } from "node:child_process";
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

/** Totals of some histories. */
export interface Figures {
  histories: number;
  calls: number;
  posts: number;
  charged: number;
  callbacks: number;
  shown: number;
  /** How often a gateway was paused or dead. */
  absences: number;
  failovers: number;
  virtualMs: number;
  /** How many each check judged, by its name. */
  tried: Record<string, number>;
}

export interface Broken {
  readonly seed: number;
  readonly violations: readonly Violation[];
  /** The shrunk history as a diagram. */
  readonly drawing?: string | undefined;
}

/** A message of a worker: it is ready for its first range, or has finished one. */
export type Told = "ready" | { readonly figures: Figures; readonly broken: readonly Broken[] };

/** A range of seeds. */
export interface Range {
  readonly first: number;
  readonly last: number;
}

export function noFigures(): Figures {
  return {
    ...{ histories: 0, calls: 0, posts: 0, charged: 0, callbacks: 0, shown: 0 },
    ...{ absences: 0, failovers: 0, virtualMs: 0, tried: {} },
  };
}

export function addTo(to: Figures, { tried, ...more }: Figures): void {
  for (const name of Object.keys(more) as (keyof typeof more)[]) to[name] += more[name];
  addTried(to.tried, tried);
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
  const { first, histories, jobs = availableParallelism(), signal } = options;
  const figures = noFigures();
  const broken: Broken[] = [];
  const underWay = new Set<Range>();
  const end = first + histories;
  // Histories on Redis take longer.
  const size = options.store === "redis" ? 2 : 20;
  let next = first;
  const take = (): Range | undefined => {
    if (next >= end || signal?.aborted) return undefined;
    const range = { first: next, last: Math.min(next + size, end) - 1 };
    next = range.last + 1;
    underWay.add(range);
    return range;
  };
  const found = (one: Broken) => {
    broken.push(one);
    options.onBroken?.(one);
  };
  const processes = Math.min(jobs, Math.ceil(histories / size));
  await Promise.all(
    Array.from({ length: processes }, () =>
      work(options, {
        take,
        done(range, told) {
          underWay.delete(range);
          addTo(figures, told.figures);
          for (const one of told.broken) found(one);
          options.onFigures?.(figures);
        },
        // The range stays in `underWay`, since not all of its seeds were tried.
        lost({ first, last }, why) {
          const check = "the simulation does not end";
          found({
            seed: first,
            violations: [{ check, found: `seeds ${first} to ${last}: ${why}` }],
          });
        },
      }),
    ),
  );
  return {
    figures,
    broken: broken.toSorted((a, b) => a.seed - b.seed),
    nextSeed: Math.min(next, ...[...underWay].map((range) => range.first)),
  };
}

interface Work {
  take(): Range | undefined;
  done(range: Range, told: Exclude<Told, "ready">): void;
  /** The process ended, or was killed, while it worked on this range. */
  lost(range: Range, why: string): void;
}

/** Runs one worker process from its start to its exit. */
async function work(options: Many, each: Work): Promise<void> {
  const { store, defect, print, signal, silentMs = 300_000 } = options;
  if (signal?.aborted) return;
  const orders: Orders = { store, defect, print };
  const worker = fork(new URL("worker.ts", import.meta.url), [JSON.stringify(orders)], {
    // Most objects of a history are garbage when it ends; stack traces are not needed.
    execArgv: ["--max-semi-space-size=32", "--stack-trace-limit=0"],
    // SIGINT from the terminal does not reach the worker: it ends after its current history.
    detached: true,
  });
  let range: Range | undefined;
  let silence: NodeJS.Timeout | undefined;
  let hasLeft = false;
  const leave = () => {
    hasLeft = true;
    if (worker.connected) worker.disconnect();
  };
  const stop = () => {
    range = undefined;
    leave();
  };
  const hear = (told: Told) => {
    clearTimeout(silence);
    if (told !== "ready" && range) each.done(range, told);
    range = each.take();
    if (!range) return leave();
    // Ignore errors: the worker may have exited, which `endOf` reports.
    worker.send(range, () => {});
    silence = setTimeout(() => worker.kill("SIGKILL"), silentMs);
  };
  worker.on("message", hear);
  signal?.addEventListener("abort", stop, { once: true });
  options.onProcess?.(worker);
  const why = await endOf(worker);
  clearTimeout(silence);
  signal?.removeEventListener("abort", stop);
  if (range) each.lost(range, why);
  else if (!hasLeft) throw new Error(`a process of the simulation did not begin: ${why}`);
}

function endOf(worker: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    worker.once("error", reject);
    worker.once("exit", (code, name) => resolve(name ?? `exit code ${code}`));
  });
}
