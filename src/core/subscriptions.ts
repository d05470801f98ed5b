import {
  DeactivateSubscriptionRequestSchema,
  UpdateSubscriptionRequestSchema,
} from "../gen/payments/v1/subscription_service_pb.ts";
import type { Context } from "./context.ts";
import type { Core } from "./core.ts";
import { customerOf } from "./customer.ts";
import { sendOptions } from "./money-calls.ts";
import { validate } from "./validate.ts";

type SubscriptionCases = Pick<Core, "updateSubscription" | "deactivateSubscription">;

/** Billing subscriptions of customers. */
export function subscriptionCases(context: Context): SubscriptionCases {
  return {
    async updateSubscription(request, call) {
      const asked = { ...request };
      const customer = customerOf(call, request.customer);
      if (customer) asked.customer = customer;
      validate(UpdateSubscriptionRequestSchema, asked);
      const { upstream } = context.account(call.caller.account);
      return upstream.updateSubscription(asked, sendOptions(call));
    },

    async deactivateSubscription(request, call) {
      const asked = { ...request };
      const customer = customerOf(call, request.customer);
      if (customer) asked.customer = customer;
      validate(DeactivateSubscriptionRequestSchema, asked);
      const { upstream } = context.account(call.caller.account);
      return upstream.deactivateSubscription(asked, sendOptions(call));
    },
  };
}
