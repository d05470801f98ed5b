import { callOutcomeEntry } from "../events/call-outcome.ts";
import { settleAsPaid, settleByEvents, standingsOf } from "../intents/settle.ts";
import { noTracing } from "../telemetry/tracing/tracing.ts";
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
import { createStreamDrain } from "./stream-drain.ts";
import { createStreamLimits } from "./stream-limits.ts";
import { subscriptionCases } from "./subscriptions.ts";
import { walletCases } from "./wallet.ts";

export interface RunningCore extends Core {
  /** Ends all streams with `reason`, over `spreadMs`, and waits for calls that move money. */
  drain(reason: Error, spreadMs: number): Promise<void>;
}

export function createCore(options: CoreOptions): RunningCore {
  const drain = createStreamDrain();
  const { intents, keyrings } = options;
  const recorded: Context["recorded"] = new WeakMap();
  const moneyCalls = createMoneyCalls({
    ...options.patience,
    intents,
    keyringOf(account) {
      const keyring = keyrings.get(account);
      if (!keyring) throw new Error(`no such merchant account: ${account}`);
      return keyring;
    },
    async learn(account, externalId, entry) {
      if (!entry) return true;
      const appended = await learn(options, account, externalId, entry);
      const answer = entry.event.resource.value;
      if (answer) recorded.set(answer, { entry, appended });
      return appended !== undefined;
    },
    async tell(account, intent, outcome) {
      const entry = callOutcomeEntry(intent, outcome);
      return (await learn(options, account, intent.externalId, entry)) !== undefined;
    },
    async paid(account, intent, paymentId) {
      try {
        await settleAsPaid(options, account, intent, paymentId);
      } catch (error) {
        options.observer.onUnrecorded({ account, externalId: intent.externalId, error });
      }
    },
    async released(account, kind, externalId) {
      const { standings } = await standingsOf(options, account, kind, externalId);
      const settled = standings.map((standing) => settleByEvents(options, account, standing));
      return (await Promise.all(settled)).some((became) => became !== undefined);
    },
  });
  const context: Context = {
    ...options,
    moneyCalls,
    recorded,
    drain,
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
    paymentStateAfter: cases.paymentStateAfter,
    payoutStateAfter: cases.payoutStateAfter,
    rateLimit: (call) => context.account(call.caller.account).bucket.status(),
    async drain(reason, spreadMs) {
      drain.end(reason, spreadMs);
      await moneyCalls.idle();
    },
  };
}
