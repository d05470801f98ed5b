import { AsyncLocalStorage } from "node:async_hooks";
import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import timersPromises from "node:timers/promises";
import { Random } from "./random.ts";

/** The process whose code runs: it owns the timers that the code sets. */
const current = new AsyncLocalStorage<Process>();

/** A process of the simulation: timers and answers reach it only while it runs. */
export class Process {
  readonly name: string;
  /** How far its wall clock is ahead of the true one. */
  readonly aheadMs: number;
  #state: "running" | "paused" | "dead" = "running";
  #held: (() => void)[] = [];
  /** How long its machine stood still: its monotonic clock is behind by that. */
  lostMs = 0;
  readonly #onDeath = new Set<() => void>();
  /** Made once: entering it takes a third of the time of `current.run`. */
  readonly #asItself = current.run(this, () => AsyncLocalStorage.snapshot());

  constructor(name: string, aheadMs = 0) {
    this.name = name;
    this.aheadMs = aheadMs;
  }

  get isDead(): boolean {
    return this.#state === "dead";
  }

  get isPaused(): boolean {
    return this.#state === "paused";
  }

  /** Runs `work` now, or after `resume` if it is paused; never once it is dead. */
  run(work: () => void): void {
    if (this.#state === "running") this.#asItself(work);
    else if (this.#state === "paused") this.#held.push(work);
  }

  pause(): void {
    if (this.#state === "running") this.#state = "paused";
  }

  /** @param lostMs how long its monotonic clock stood still too */
  resume(lostMs = 0): void {
    if (this.#state !== "paused") return;
    this.#state = "running";
    this.lostMs += lostMs;
    for (const work of this.#held.splice(0)) this.run(work);
  }

  kill(): void {
    this.#state = "dead";
    this.#held = [];
    for (const hear of [...this.#onDeath]) hear();
    this.#onDeath.clear();
  }

  /** @returns a function that removes `hear` */
  onDeath(hear: () => void): () => void {
    this.#onDeath.add(hear);
    return () => this.#onDeath.delete(hear);
  }
}

export function currentProcess(): Process | undefined {
  return current.getStore();
}

/**
 * Runs `work` as no process and for no call, such as what a simulated server does for a caller.
 * Entering the initial async context is faster than leaving each AsyncLocalStorage.
 */
export const asNobody: <T>(work: () => T) => T = AsyncLocalStorage.snapshot();

interface Job {
  readonly atMs: number;
  /** Undefined once it is cancelled. */
  run: (() => void) | undefined;
  /** The process that it runs in, if any. */
  readonly process: Process | undefined;
}

/**
 * Virtual time. Nothing in a simulation waits for real time: the job that is due next runs, then
 * all that follows from it, then the clock moves on to the next job. The order is the same each
 * time.
 */
export class Scheduler {
  /** The next one is the last. */
  readonly #jobs: Job[] = [];
  readonly #outside = new Set<Promise<unknown>>();
  #nowMs = 0;
  readonly random: Random;
  /** The reason of the first unhandled rejection. */
  failure: unknown;

  constructor(seed: number) {
    this.random = new Random(seed, "machine");
  }

  /** Milliseconds since the simulation began. */
  get nowMs(): number {
    return this.#nowMs;
  }

  get epochMs(): number {
    return Math.floor(epochMs + this.#nowMs);
  }

  /** @returns a function that cancels it */
  after(ms: number, run: () => void, process?: Process): () => void {
    const job: Job = { atMs: this.#nowMs + Math.max(0, ms), run, process };
    this.#put(job);
    return () => {
      job.run = undefined;
    };
  }

  wait(ms: number, process?: Process): Promise<void> {
    return new Promise((resolve) => this.after(ms, resolve, process));
  }

  /** Waits for a real server: the clock of the simulation stops until it answers. */
  outside<T>(answer: Promise<T>): Promise<T> {
    const ended = answer.then(
      () => {},
      () => {},
    );
    this.#outside.add(ended);
    void ended.then(() => this.#outside.delete(ended));
    return answer;
  }

  /** Runs `step` until it returns false, and after each run all that follows from it. */
  async #each(step: () => boolean): Promise<void> {
    let goesOn = true;
    let failed: { error: unknown } | undefined;
    const stepOn = () => {
      try {
        goesOn = step();
      } catch (error) {
        failed = { error };
      }
    };
    while (goesOn) {
      while (this.#outside.size > 0) await Promise.all(this.#outside);
      await turn(() => {
        drain();
        while (goesOn && !failed && this.#outside.size === 0) {
          // Like `queueMicrotask`, but without an async resource for each call.
          void nothing.then(stepOn);
          drain();
        }
      });
      if (failed) throw failed.error;
    }
  }

  /** Runs `make` on virtual time, before the simulation runs. */
  prepare<T>(make: () => T): T {
    active = this;
    try {
      return make();
    } finally {
      active = undefined;
    }
  }

  /**
   * Runs until `isOver`, until no job is left, or up to `maxMs`. Then runs `end` and all jobs that
   * are due at once, so that nothing left in shared queues of the code under test meets the next
   * simulation.
   */
  async run(isOver: () => boolean, maxMs: number, end: () => void): Promise<void> {
    active = this;
    const onRejection = (error: unknown) => {
      this.failure ??= error;
    };
    process.on("unhandledRejection", onRejection);
    try {
      await this.#each(() => {
        if (this.failure !== undefined) throw this.failure;
        if (isOver()) return false;
        const job = this.#jobs.pop();
        if (!job || job.atMs > maxMs) return false;
        this.#nowMs = job.atMs;
        runJob(job);
        return true;
      });
    } finally {
      let isEnded = false;
      await this.#each(() => {
        if (!isEnded) {
          isEnded = true;
          end();
          return true;
        }
        if ((this.#jobs.at(-1)?.atMs ?? Infinity) > this.#nowMs) return false;
        runJob(this.#jobs.pop()!);
        return true;
      });
      process.off("unhandledRejection", onRejection);
      active = undefined;
    }
  }

  /** Puts a job behind all others that are due at the same time. */
  #put(job: Job): void {
    const jobs = this.#jobs;
    let [from, to] = [0, jobs.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (jobs[middle]!.atMs > job.atMs) from = middle + 1;
      else to = middle;
    }
    jobs.splice(from, 0, job);
  }
}

const nothing = Promise.resolve();

function runJob({ run, process }: Job): void {
  if (!run) return;
  if (process) process.run(run);
  else run();
}

const realImmediate = setImmediate;
/** The real timers, also while a simulation runs. */
export const realTimers = { setTimeout, clearTimeout };

/** Runs `work` in a turn of the event loop, where nothing else is under way. */
function turn(work: () => void): Promise<void> {
  return new Promise((resolve) => {
    realImmediate(() => {
      work();
      resolve();
    });
  });
}

/**
 * Runs all queued promise callbacks and ticks, as Node.js itself does between two timers. Waiting
 * for a turn of the event loop instead would take longer than the work in it.
 */
const drain = (process as unknown as { _tickCallback(): void })._tickCallback;

/** The wall-clock time at which every simulation begins, in milliseconds. */
export const epochMs = Date.UTC(2030, 0, 1);

let active: Scheduler | undefined;

/** The timer object that the code under test gets. */
class VirtualTimer {
  cancel: () => void = () => {};

  unref(): this {
    return this;
  }
}

/** A timer goes by its process's clock: while that stands still, so does the timer. */
function onOwnClock(
  scheduler: Scheduler,
  ms: number,
  run: () => void,
  owner: Process | undefined,
): () => void {
  const { lostMs = 0 } = owner ?? {};
  // As in Node.js: else a timer for what is left of a time could be due at once, for ever.
  const forMs = ms > 0 ? Math.max(ms, 1) : 0;
  const dueMs = scheduler.nowMs + forMs;
  let stop = scheduler.after(
    forMs,
    () => {
      const leftMs = dueMs + (owner?.lostMs ?? 0) - lostMs - scheduler.nowMs;
      if (leftMs > 0) stop = scheduler.after(leftMs, run, owner);
      else run();
    },
    owner,
  );
  return () => stop();
}

let installed = false;

/**
 * Replaces the clock, timers and randomness of this process by virtual ones, so that the code under
 * test runs unchanged. Outside a simulation they behave like the real ones.
 */
export function installVirtualTime(): void {
  if (installed) return;
  installed = true;
  const real = {
    ...{ setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, clearImmediate },
    dateNow: Date.now,
    now: performance.now.bind(performance),
    random: Math.random,
    delay: timersPromises.setTimeout,
    randomUUID: crypto.randomUUID,
  };
  type Callback = (...args: unknown[]) => void;

  const virtual = {
    setTimeout(run: Callback, ms = 0, ...args: unknown[]) {
      if (!active) return real.setTimeout(run, ms, ...args);
      const timer = new VirtualTimer();
      timer.cancel = onOwnClock(active, ms, () => run(...args), currentProcess());
      return timer;
    },
    setInterval(run: Callback, ms = 0, ...args: unknown[]) {
      const scheduler = active;
      if (!scheduler) return real.setInterval(run, ms, ...args);
      const owner = currentProcess();
      const timer = new VirtualTimer();
      const wait = () => {
        timer.cancel = onOwnClock(scheduler, ms, again, owner);
      };
      const again = () => {
        wait();
        run(...args);
      };
      wait();
      return timer;
    },
    setImmediate(run: Callback, ...args: unknown[]) {
      if (!active) return real.setImmediate(run, ...args);
      // Owned by no process: all processes share the queues that the code under test runs this way.
      const timer = new VirtualTimer();
      timer.cancel = active.after(0, () => run(...args));
      return timer;
    },
  };
  const clear = (clearReal: (timer: never) => void) => (timer: unknown) => {
    if (timer instanceof VirtualTimer) timer.cancel();
    else clearReal(timer as never);
  };
  Object.assign(globalThis, {
    ...virtual,
    clearTimeout: clear(real.clearTimeout),
    clearInterval: clear(real.clearInterval),
    clearImmediate: clear(real.clearImmediate),
  });
  Date.now = () => (active ? active.epochMs + (currentProcess()?.aheadMs ?? 0) : real.dateNow());
  performance.now = () => (active ? active.nowMs - (currentProcess()?.lostMs ?? 0) : real.now());
  Math.random = () => active?.random.next() ?? real.random();
  timersPromises.setTimeout = ((ms: number, value: unknown, options?: { signal?: AbortSignal }) => {
    if (!active) return real.delay(ms, value, options);
    const { signal } = options ?? {};
    return new Promise<unknown>((resolve, reject) => {
      const onAbort = () => {
        globalThis.clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = globalThis.setTimeout(() => {
        signal?.removeEventListener("abort", onAbort);
        resolve(value);
      }, ms);
      if (signal?.aborted) onAbort();
      else signal?.addEventListener("abort", onAbort, { once: true });
    });
  }) as typeof timersPromises.setTimeout;
  crypto.randomUUID = ((options?: crypto.RandomUUIDOptions) => {
    if (!active) return real.randomUUID(options);
    const { random } = active;
    return `${random.hex(8)}-${random.hex(4)}-4${random.hex(3)}-8${random.hex(3)}-${random.hex(12)}`;
  }) as typeof crypto.randomUUID;
  syncBuiltinESMExports();
}
