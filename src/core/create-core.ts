import { callOutcomeEntry } from "../events/call-outcome.ts";
import { settleAsPaid, settleByEvents } from "../intents/settle.ts";
import { noTracing } from "../tracing/tracing.ts";
import type { Context, CoreOptions } from "./context.ts";
import type { Core } from "./core.ts";
import { eventCases } from "./events.ts";
import { guarded } from "./guard.ts";
import { learn } from "./learn.ts";
import { createMoneyCalls } from "./money-calls.ts";
import { observedStreams } from "./observed-streams.ts";
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
  const { log, intents, seals } = options;
  const moneyCalls = createMoneyCalls({
    ...options.patience,
    intents,
    sealOf(account) {
      const seal = seals.get(account);
      if (!seal) throw new Error(`no such merchant account: ${account}`);
      return seal;
    },
    learn: (account, externalId, entry) => learn(options, account, externalId, entry),
    tell: (account, intent, outcome) =>
      learn(options, account, intent.externalId, callOutcomeEntry(intent, outcome)),
    async paid(account, intent, paymentId) {
      try {
        await settleAsPaid(options, account, intent, paymentId);
      } catch (error) {
        options.observer.onUnrecorded({ account, externalId: intent.externalId, error });
      }
    },
    async released(account, kind, externalId) {
      const open = await intents.open(account, kind, externalId);
      const snapshot = await log.snapshot(account, kind, externalId);
      const settled = open.map((intent) => settleByEvents(options, account, intent, snapshot));
      return (await Promise.all(settled)).some((became) => became !== undefined);
    },
  });
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
  const guardedCases = guarded(cases, createStreamLimits(options.maxStreamsPerCaller));
  const { tracing = noTracing, observer } = options;
  const { onStream } = observer;
  return {
    ...(onStream ? observedStreams(guardedCases, tracing, { onStream }) : guardedCases),
    rateLimit: (call) => context.account(call.caller.account).bucket.status(),
    async drain(reason) {
      drain.abort(reason);
      await moneyCalls.idle();
    },
  };
}
