import { ofAccount } from "../errors.ts";
import { Drain } from "../live/drain.ts";
import type { Context, CoreOptions } from "./context.ts";
import type { Call, Core } from "./core.ts";
import { customerCases } from "./customer.ts";
import { guarded } from "./guard.ts";
import { eventCases } from "./list-events.ts";
import { createMoneyCalls } from "./money-calls.ts";
import { paymentCases } from "./payments.ts";
import { payoutCases } from "./payouts.ts";
import { createStreamLimits } from "./stream-limits.ts";

export interface RunningCore extends Core {
  /**
   * Ends all waits, and all streams with `reason` over `spreadMs`, and resolves when no call that
   * moves money is under way.
   */
  drain(reason: Error, spreadMs: number): Promise<void>;
}

/** Most open waits per caller; a wait costs what a stream costs. */
const maxWaitsPerCaller = 10_000;

export function createCore(options: CoreOptions): RunningCore {
  const drain = new Drain();
  const waits = new Drain();
  const moneyCalls = createMoneyCalls(options);
  const accountOf = ({ caller }: Pick<Call, "caller">) =>
    ofAccount(options.accounts, caller.account);
  const context: Context = {
    ...options,
    moneyCalls,
    waits,
    waitLimits: createStreamLimits(maxWaitsPerCaller),
    drain,
    upstreamOf: (call) => accountOf(call).upstream,
  };
  const cases = {
    ...paymentCases(context),
    ...payoutCases(context),
    ...customerCases(context),
    ...eventCases(context),
  };
  return {
    ...guarded(cases, options),
    rateLimit: (call) => accountOf(call).bucket.status(),
    async drain(reason, spreadMs) {
      waits.end(reason, 0);
      drain.end(reason, spreadMs);
      await moneyCalls.idle();
    },
  };
}
