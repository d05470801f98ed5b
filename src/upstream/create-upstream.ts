import type { PayoutEnds } from "../model/payout-statuses.ts";
import { type ClientOptions, createClient } from "./client.ts";
import { operationCalls } from "./operations.ts";
import { paymentCalls } from "./payments.ts";
import { payoutCalls } from "./payouts.ts";
import { subscriptionCalls } from "./subscriptions.ts";
import type { Upstream } from "./upstream.ts";
import { walletCalls } from "./wallet.ts";

export interface UpstreamOptions extends ClientOptions {
  /** The service's final payout statuses. Default: success and failure. */
  readonly payoutEnds?: PayoutEnds;
}

/** Creates the client of the payments service for one account. It does not close the bucket. */
export function createUpstream(options: UpstreamOptions): Upstream {
  const client = createClient(options);
  return {
    ...paymentCalls(client),
    ...payoutCalls(client, options.payoutEnds),
    ...walletCalls(client),
    ...subscriptionCalls(client),
    ...operationCalls(client),
    close: client.close,
  };
}
