import { judge, type Verdicts } from "./checks.ts";
import type { History } from "./history.ts";
import { type Plan, planOf, type Step } from "./plan.ts";
import { type OpenStores, simulate } from "./simulate.ts";

/** The stores in which the gateways of a simulation keep their state. */
export type StoreName = "memory" | "sqlite" | "redis";

/** How each kind of store is opened. Its code is loaded when the first history needs it. */
export const forms: Readonly<Record<StoreName, Form>> = {
  memory: {
    load: async () => (await import("./stores/memory.ts")).createMemoryStores,
    ...{ oneProcess: false, failsOver: false },
  },
  sqlite: {
    load: async () => (await import("./stores/sqlite.ts")).createSqliteStores,
    ...{ oneProcess: true, failsOver: false },
  },
  redis: {
    load: async () => (await import("./stores/redis.ts")).createRedisStores,
    ...{ oneProcess: false, failsOver: true },
    before: async () => (await import("./stores/real-redis.ts")).emptyRedis(),
    after: async () => (await import("./stores/real-redis.ts")).closeRedis(),
  },
};

interface Form {
  load(): Promise<OpenStores>;
  readonly oneProcess: boolean;
  readonly failsOver: boolean;
  /** Runs before each history. */
  readonly before?: () => Promise<void>;
  /** Runs after the last history. */
  readonly after?: () => Promise<void>;
}

/** The result of one plan. */
export interface Run extends Verdicts {
  readonly plan: Plan;
  readonly history: History;
}

export async function runSeed(seed: number, form: StoreName = "memory"): Promise<Run> {
  return await runPlan(planOf(seed, forms[form]), form);
}

export async function runPlan(plan: Plan, form: StoreName = "memory"): Promise<Run> {
  const { load, before } = forms[form];
  await before?.();
  const history = await simulate(plan, await load());
  return { plan, history, ...judge(history) };
}

/**
 * Shrinks a plan to few steps that still break the same check: leaves out steps, the larger parts
 * first, and then simplifies the steps that remain.
 * @throws Error if nothing is broken
 */
export async function shrink({ plan, violations }: Run, form: StoreName = "memory"): Promise<Run> {
  const [first] = violations;
  if (!first) throw new Error("nothing is broken");
  let smallest: Run = { ...(await runPlan(plan, form)) };
  let tries = 400;
  const attempt = async (steps: readonly Step[], change: Partial<Plan> = {}) => {
    if (tries-- <= 0) return false;
    try {
      const run = await runPlan({ ...smallest.plan, ...change, steps }, form);
      if (!run.violations.some(({ check }) => check === first.check)) return false;
      smallest = run;
      return true;
    } catch {
      return false;
    }
  };
  for (let size = Math.ceil(plan.steps.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let at = 0; at < smallest.plan.steps.length; ) {
      const { steps } = smallest.plan;
      if (!(await attempt(steps.toSpliced(at, size)))) at += size;
    }
  }
  for (let at = 0; at < smallest.plan.steps.length; at++) {
    for (const simpler of simplerOf(smallest.plan.steps[at] as Step)) {
      await attempt(smallest.plan.steps.with(at, simpler));
    }
  }
  for (const replicas of [1, 2]) {
    if (replicas < smallest.plan.replicas) await attempt(smallest.plan.steps, { replicas });
  }
  return smallest;
}

function simplerOf(step: Step): Step[] {
  if (step.do === "watch") return [{ ...step, cutsAfterMs: [] }];
  if (step.do !== "pay") return [];
  const { key: _, deadlineMs: __, ...unlimited } = step;
  return [
    { ...step, echoes: [] },
    { ...step, retries: 0 },
    { ...step, turns: [] },
    { ...step, callbacks: "soon" },
    { ...unlimited, echoes: [] },
  ];
}
