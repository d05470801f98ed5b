import type { Core } from "../../src/core/core.ts";

/** One call that reached the core. */
export interface Seen {
  readonly method: keyof Core;
  readonly args: readonly unknown[];
}

/**
 * A core with the methods that a test passes, and `rateLimit`; `seen` records each call. A call of
 * any other method throws.
 */
export function fakeCore(methods: Partial<Core>): { core: Core; seen: Seen[] } {
  const seen: Seen[] = [];
  const all: Partial<Core> = {
    rateLimit: () => ({ limit: 10, remaining: 7, remainingForReads: 5, resetSeconds: 1 }),
    ...methods,
  };
  const core = new Proxy(all as Core, {
    get(target, name: keyof Core) {
      const method = target[name] as ((...args: unknown[]) => unknown) | undefined;
      return (...args: unknown[]) => {
        if (!method) throw new Error(`the test did not expect ${name}`);
        seen.push({ method: name, args });
        return method(...args);
      };
    },
  });
  return { core, seen };
}
