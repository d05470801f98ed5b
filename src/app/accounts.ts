import type { Activities } from "../admin/activity.ts";
import type { Account } from "../core/context.ts";
import type { Causes } from "../ledger/cause-of.ts";
import type { PayoutEnds } from "../model/payout-statuses.ts";
import type { MemoryBudget } from "../net/memory-budget.ts";
import { observedBucket } from "../ratelimit/observed-bucket.ts";
import type { Report } from "../report.ts";
import type { Tracing } from "../telemetry/tracing/tracing.ts";
import { createUpstream } from "../upstream/create-upstream.ts";
import type { MerchantAccount } from "../upstream/upstream.ts";
import type { Stores } from "./stores.ts";

export interface AccountsOptions {
  readonly accounts: readonly MerchantAccount[];
  readonly stores: Pick<Stores, "bucketOf">;
  /** Receives each call that moves money, so that its callback's span can link to the call. */
  readonly causes: Causes;
  readonly activities: Activities;
  readonly report: Report;
  readonly tracing: Tracing;
  readonly timeoutMs: number;
  readonly payoutEnds: PayoutEnds;
  readonly budget: MemoryBudget;
}

/**
 * The merchant accounts, each with its rate budget and its client of the payments service.
 * `refused`: the names of those whose credentials the service refuses.
 */
export function runAccounts(options: AccountsOptions) {
  const { accounts, stores, causes, activities, tracing, timeoutMs, payoutEnds, budget } = options;
  const refused = new Set<string>();
  const report: Report = (...observed) => {
    const [name, about] = observed;
    if (name === "tokenGiven") activities.get(about.account)?.waited(about);
    if (name === "credentials" && about.accepted) refused.delete(about.account);
    if (name === "credentials" && !about.accepted) refused.add(about.account);
    options.report(...observed);
  };
  const byName = accounts.map((account): [string, Account] => {
    const { name } = account;
    const bucket = observedBucket(name, stores.bucketOf(name), report);
    const upstream = createUpstream({
      ...{ account, bucket, timeoutMs, report, tracing, payoutEnds, budget },
      onMoneyCall: ({ kind, externalId, trace }) => causes.sent(name, kind, externalId, trace),
    });
    return [name, { bucket, upstream }];
  });
  return { byName: new Map(byName), refused };
}
