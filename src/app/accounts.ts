import { type ActivityWindows, observeBucket, observeUpstream } from "../admin/observe.ts";
import type { Account } from "../core/context.ts";
import type { Causes } from "../ledger/cause-of.ts";
import type { PayoutEnds } from "../model/payout-statuses.ts";
import { observedBucket } from "../ratelimit/observed-bucket.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { Tracing } from "../telemetry/tracing/tracing.ts";
import { createUpstream } from "../upstream/create-upstream.ts";
import type { MerchantAccount } from "../upstream/upstream.ts";
import type { Stores } from "./stores.ts";

export interface AccountsOptions {
  readonly accounts: readonly MerchantAccount[];
  readonly stores: Pick<Stores, "bucketOf">;
  /** Receives each call that moves money, so that its callback's span can link to the call. */
  readonly causes: Causes;
  readonly activityWindows: ActivityWindows;
  readonly telemetry: Telemetry;
  readonly tracing: Tracing;
  readonly timeoutMs: number;
  readonly payoutEnds: PayoutEnds;
}

/** The merchant accounts, each with its rate budget and its client of the payments service. */
export interface RunningAccounts {
  readonly byName: ReadonlyMap<string, Account>;
  /** Names of the accounts whose credentials the service refuses. */
  readonly refused: ReadonlySet<string>;
}

export function runAccounts(options: AccountsOptions): RunningAccounts {
  const { accounts, stores, causes, activityWindows, telemetry } = options;
  const { tracing, timeoutMs, payoutEnds } = options;
  const refused = new Set<string>();
  const byName = accounts.map((account): [string, Account] => {
    const { name } = account;
    const activity = activityWindows.get(name);
    const waits = observeBucket(activity, telemetry.rateLimit.observerOf(name));
    const bucket = observedBucket(stores.bucketOf(name), waits);
    const observed = telemetry.upstreamOf(name);
    const observer = observeUpstream(activity, {
      ...observed,
      onMoneyCall: ({ kind, externalId, trace }) => causes.sent(name, kind, externalId, trace),
      onCredentials(accepted) {
        if (accepted) refused.delete(name);
        else refused.add(name);
        observed.onCredentials(accepted);
      },
    });
    const about = { timeoutMs, observer, tracing, payoutEnds };
    const upstream = createUpstream({ account, bucket, ...about });
    return [name, { bucket, upstream }];
  });
  return { byName: new Map(byName), refused };
}
