import type { Report } from "../report.ts";
import { type BreakerOptions, type BreakerPolicy, createBreaker, type Pass } from "./breaker.ts";
import type { Verdict } from "./verdict.ts";

/**
 * The two breakers of a merchant account, and so of its one origin. Each counts only its own calls,
 * so that failing reads never block a payment.
 */
export type Breakers = ReturnType<typeof createBreakers>;

export function createBreakers(
  account: string,
  report: Report,
  options: Pick<BreakerOptions, "now" | "random"> & {
    readonly policy: Partial<BreakerPolicy> | undefined;
  },
) {
  const breaker = (calls: keyof typeof policies) =>
    createBreaker({
      ...options,
      policy: { ...policies[calls], ...options.policy },
      onState: (state) => report("breaker", { account, calls, state }),
    });
  return {
    /**
     * For calls that move money. Only calls that could not be sent count as failures: once open, the
     * breaker refuses at once what would otherwise fail after its wait for a connection. While calls
     * can be sent they are sent: one that succeeds is worth more than one that is spared, and a
     * failure is reported as it is.
     */
    money: breaker("money"),
    /** For all other calls. */
    other: breaker("other"),
  };
}

/** Settles the pass of a money call: a failure after the request was sent counts as answered. */
export function settleMoney(pass: Pass, verdict: Verdict, sent: boolean): void {
  pass.settle(sent && verdict !== "nothing" ? "answered" : verdict);
}

const common = {
  windowMs: 10_000,
  minimumCalls: 20,
  failureShare: 0.5,
  timeoutsInARow: 5,
  firstPauseMs: 1_000,
};

const policies = {
  // Short: a probe notices within seconds that the service is back, and payments wait the least.
  money: { ...common, maxPauseMs: 2_000 },
  other: { ...common, maxPauseMs: 10_000 },
} satisfies Record<string, BreakerPolicy>;
