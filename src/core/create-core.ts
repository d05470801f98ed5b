import type { Context, CoreOptions } from "./context.ts";
import type { Core } from "./core.ts";
import { eventCases } from "./events.ts";
import { guarded } from "./guard.ts";
import { createMoneyCalls } from "./money-calls.ts";
import { operationCases } from "./operations.ts";
import { paymentCases } from "./payments.ts";
import { payoutCases } from "./payouts.ts";
import { createStreamLimits } from "./stream-limits.ts";
import { subscriptionCases } from "./subscriptions.ts";
import { walletCases } from "./wallet.ts";

export interface RunningCore extends Core {
  /** Ends all streams with UNAVAILABLE and waits for calls that move money. */
  drain(reason: Error): Promise<void>;
}

export function createCore(options: CoreOptions): RunningCore {
  const drain = new AbortController();
  const moneyCalls = createMoneyCalls(options.idempotency);
  const context: Context = {
    ...options,
    moneyCalls,
    drain: drain.signal,
    account(name) {
      const account = options.accounts.get(name);
      if (!account) throw new Error(`no such merchant account: ${name}`);
      return account;
    },
  };
  const cases = {
    ...paymentCases(context),
    ...payoutCases(context),
    ...walletCases(context),
    ...subscriptionCases(context),
    ...operationCases(context),
    ...eventCases(context),
  };
  return {
    ...guarded(cases, createStreamLimits(options.maxStreamsPerCaller)),
    rateLimit: (call) => context.account(call.caller.account).bucket.status(),
    async drain(reason) {
      drain.abort(reason);
      await moneyCalls.idle();
    },
  };
}
