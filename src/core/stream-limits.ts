import type { Caller } from "../auth/caller.ts";
import { GatewayError } from "../errors.ts";

export type StreamLimits = ReturnType<typeof createStreamLimits>;

/** Streams that a caller may have open by default. */
const defaultStreamLimits = { service: 1_000, single: 20 } as const;

/**
 * Limits how many streams each caller has open in this process, over both edges together.
 * @param limit of every caller; undefined: 1,000 for a service, 20 for a customer or a watch token,
 * and none for anonymous callers (AUTH_MODE=none), since they would all share one
 */
export function createStreamLimits(limit: number | undefined) {
  const open = new Map<string, number>();

  const limitOf = ({ watch, customer, name }: Caller) => {
    if (limit !== undefined) return limit;
    if (watch ?? customer) return defaultStreamLimits.single;
    return name === "anonymous" ? Number.POSITIVE_INFINITY : defaultStreamLimits.service;
  };

  return {
    /**
     * Counts one more open stream of the caller; the returned function counts it down again.
     * @throws GatewayError RESOURCE_EXHAUSTED when the caller has reached its limit
     */
    take(caller: Caller): () => void {
      const max = limitOf(caller);
      const count = open.get(caller.name) ?? 0;
      if (count >= max) throw tooMany(max);
      open.set(caller.name, count + 1);
      let taken = true;
      return () => {
        if (!taken) return;
        taken = false;
        const left = (open.get(caller.name) ?? 1) - 1;
        if (left > 0) open.set(caller.name, left);
        else open.delete(caller.name);
      };
    },
  };
}

function tooMany(max: number): GatewayError {
  return new GatewayError("RESOURCE_EXHAUSTED", `more than ${max} streams of one caller`, {
    reason: "TOO_MANY_STREAMS",
  });
}
