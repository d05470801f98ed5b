import {
  DeactivateSubscriptionRequestSchema,
  UpdateSubscriptionRequestSchema,
} from "../gen/payments/v1/subscription_service_pb.ts";
import type { Context } from "./context.ts";
import type { Core } from "./core.ts";
import { forCustomer } from "./customer.ts";
import { sendOptions } from "./money-calls.ts";

/** Billing subscriptions of customers. */
export function subscriptionCases(context: Context) {
  return {
    async updateSubscription(request, call) {
      const asked = forCustomer(UpdateSubscriptionRequestSchema, request, call);
      const { upstream } = context.account(call.caller.account);
      return upstream.updateSubscription(asked, sendOptions(call));
    },

    async deactivateSubscription(request, call) {
      const asked = forCustomer(DeactivateSubscriptionRequestSchema, request, call);
      const { upstream } = context.account(call.caller.account);
      return upstream.deactivateSubscription(asked, sendOptions(call));
    },
  } satisfies Partial<Core>;
}
