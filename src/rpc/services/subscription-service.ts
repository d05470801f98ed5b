import type { ServiceImpl } from "@connectrpc/connect";
import type { Core } from "../../core/core.ts";
import type { SubscriptionService } from "../../gen/payments/v1/subscription_service_pb.ts";
import { callOf } from "../gated-call.ts";

/**
 * Implements the contract's SubscriptionService for billing subscriptions: each method is one use
 * case of the core.
 */
export function subscriptionService(core: Core): ServiceImpl<typeof SubscriptionService> {
  return {
    updateSubscription: (request, context) => core.updateSubscription(request, callOf(context)),
    deactivateSubscription: (request, context) =>
      core.deactivateSubscription(request, callOf(context)),
  };
}
