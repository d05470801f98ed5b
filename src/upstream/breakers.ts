import type { Report } from "../report.ts";
import { type BreakerOptions, type BreakerState, createBreaker, type Pass } from "./breaker.ts";
import type { Verdict } from "./verdict.ts";

/**
 * The two breakers of a merchant account, and so of its one origin. Each counts only its own calls,
 * so that failing reads never block a payment.
 */
export type Breakers = ReturnType<typeof createBreakers>;

export function createBreakers(
  account: string,
  report: Report,
  clocks: Pick<BreakerOptions, "now" | "random">,
) {
  const breaker = (calls: "money" | "other", maxPauseMs: number) => {
    const onState = (state: BreakerState) => report("breaker", { account, calls, state });
    return createBreaker({ ...clocks, maxPauseMs, onState });
  };
  return {
    /**
     * For calls that move money. Only calls that could not be sent count as failures: once open, the
     * breaker refuses at once what would otherwise fail after its wait for a connection. While calls
     * can be sent they are sent: one that succeeds is worth more than one that is spared, and a
     * failure is reported as it is. A probe notices within seconds that the service is back, so that
     * payments wait the least.
     */
    money: breaker("money", 2_000),
    /** For all other calls. */
    other: breaker("other", 10_000),
  };
}

/** Settles the pass of a money call: a failure after the request was sent counts as answered. */
export function settleMoney(pass: Pass, verdict: Verdict, sent: boolean): void {
  pass.settle(sent && verdict !== "nothing" ? "answered" : verdict);
}
