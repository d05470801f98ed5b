import type { Call, Core } from "../src/core/core.ts";

/** One call that reached the core. */
export interface Seen {
  readonly method: keyof Core;
  readonly request: unknown;
  readonly call: Call;
}

/**
 * A core with the methods that a test passes, and `rateLimit`. A call of any other method
 * throws. `seen` records all calls but those of `rateLimit`, which each response causes.
 */
export function fakeCore(methods: Partial<Core>, seen: Seen[]): Core {
  const all: Partial<Core> = {
    rateLimit: () => ({ limit: 10, remaining: 7, remainingForReads: 5, resetSeconds: 1 }),
    ...methods,
  };
  return new Proxy(all as Core, {
    get(target, name: keyof Core) {
      const method = target[name] as ((request: unknown, call: Call) => unknown) | undefined;
      if (name === "rateLimit") return method;
      return (request: unknown, call: Call) => {
        if (!method) throw new Error(`the test did not expect ${name}`);
        seen.push({ method: name, request, call });
        return method(request, call);
      };
    },
  });
}
