import { type Breaker, type BreakerPolicy, createBreaker, type Pass } from "./breaker.ts";
import type { UpstreamObserver } from "./upstream.ts";
import type { Verdict } from "./verdict.ts";

/**
 * The two breakers of an account, and so of its one origin. They hear of their own calls alone, so
 * that failing reads hold up no payment.
 */
export interface Breakers {
  /**
   * For calls that move money. It counts only those that could not be sent at all: it then says at
   * once what each of them would have said after its wait for a connection. While calls can be sent
   * they are, since one that gets through is worth more than one that is spared; what fails then is
   * told as it is.
   */
  readonly money: Breaker;
  /** For all other calls. */
  readonly other: Breaker;
}

export interface BreakersOptions {
  readonly policy?: Partial<BreakerPolicy> | undefined;
  readonly now: () => number;
  readonly random: () => number;
  readonly observer: UpstreamObserver;
}

export function createBreakers({ policy, now, random, observer }: BreakersOptions): Breakers {
  const breaker = (calls: keyof Breakers) =>
    createBreaker({
      policy: { ...policies[calls], ...policy },
      now,
      random,
      onState: (change) => observer.onBreaker?.({ calls, ...change }),
    });
  return { money: breaker("money"), other: breaker("other") };
}

/** Tells a pass of a call that moves money what its breaker counts. */
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

const policies: Readonly<Record<keyof Breakers, BreakerPolicy>> = {
  // A service that is back is known to be within seconds, and payments wait the least.
  money: { ...common, maxPauseMs: 2_000 },
  other: { ...common, maxPauseMs: 10_000 },
};
