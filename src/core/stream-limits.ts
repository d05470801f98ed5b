import type { Caller } from "../auth/caller.ts";

/**
 * Limits how many streams each caller has open in this process, over both edges together.
 * @param limit of every caller; undefined: 1,000 for a service, 20 for a customer or a watch token,
 * and none for anonymous callers (AUTH_MODE=none), since they would all share one
 */
export function createStreamLimits(limit: number | undefined) {
  const open = new Map<string, number>();

  const limitOf = ({ watch, customer, name }: Caller) => {
    if (limit !== undefined) return limit;
    if (watch ?? customer) return 20;
    return name === "anonymous" ? Number.POSITIVE_INFINITY : 1_000;
  };

  return {
    /**
     * Counts one more open stream of the caller; undefined when it has reached its limit.
     * @returns what counts it down again, to be called once
     */
    take(caller: Caller): (() => void) | undefined {
      const { name } = caller;
      const count = open.get(name) ?? 0;
      if (count >= limitOf(caller)) return undefined;
      open.set(name, count + 1);
      return () => {
        const left = (open.get(name) ?? 1) - 1;
        if (left > 0) open.set(name, left);
        else open.delete(name);
      };
    },
  };
}
