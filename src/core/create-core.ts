import { type CoreOptions, createContext } from "./context.ts";
import type { Core } from "./core.ts";
import { customerCases } from "./customer.ts";
import { guarded } from "./guard.ts";
import { eventCases } from "./list-events.ts";
import { paymentCases } from "./payments.ts";
import { payoutCases } from "./payouts.ts";

export interface RunningCore extends Core {
  /**
   * Ends all waits, and all streams with `reason` over `spreadMs`, and resolves when no call that
   * moves money is under way.
   */
  drain(reason: Error, spreadMs: number): Promise<void>;
}

export function createCore(options: CoreOptions): RunningCore {
  const context = createContext(options);
  const cases = {
    ...paymentCases(context),
    ...payoutCases(context),
    ...customerCases(context),
    ...eventCases(context),
  };
  return {
    ...guarded(cases, options),
    rateLimit: (call) => context.accountOf(call).bucket.status(),
    async drain(reason, spreadMs) {
      context.waits.end(reason, 0);
      context.drain.end(reason, spreadMs);
      await context.moneyCalls.idle();
    },
  };
}
