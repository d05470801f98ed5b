import * as z from "zod";
import {
  DeactivateSubscriptionResponseSchema,
  UpdateSubscriptionResponseSchema,
} from "../../src/gen/payments/v1/subscription_service_pb.ts";
import type { SavedState } from "../ledger/saved-state.ts";
import { ApiError, invalid } from "./api-error.ts";
import { type CustomerIdentity, subscriptionCustomer } from "./customers.ts";
import { flag, isUuid, readBody } from "./fields.ts";
import { bodyOf, json, type Route, type SandboxRequest } from "./http.ts";

/** A billing subscription of a customer. */
export interface SubscriptionRecord {
  readonly id: string;
  readonly customerExternalId: string;
  readonly customerRid: string;
  autoRenew: boolean;
  active: boolean;
  /** Whether auto_renew is locked against changes. */
  readonly locked: boolean;
}

/** The two subscription endpoints (spec, Subscriptions). */
export function createSubscriptionRoutes(
  subscriptions: readonly SubscriptionRecord[],
  saved: SavedState,
): Route[] {
  const byId = new Map(
    [...subscriptions, ...saved.all<SubscriptionRecord>("subscription")].map((one) => [
      one.id,
      one,
    ]),
  );

  function activeSubscription(request: SandboxRequest): SubscriptionRecord {
    const id = request.params.subscription_id ?? "";
    if (!isUuid.test(id)) throw invalid("subscription_id", "must be a uuid");
    const subscription = byId.get(id.toLowerCase());
    if (!subscription || !isOwner(subscriptionCustomer(request), subscription)) {
      throw new ApiError("subscription_not_found", { param: "subscription_id" });
    }
    if (!subscription.active) throw new ApiError("subscription_not_active");
    return subscription;
  }

  return [
    {
      method: "PATCH",
      path: "/api/subscriptions/v1/subscriptions/{subscription_id}",
      handle(request) {
        const { auto_renew: autoRenew } = readBody(updateBody, request.body);
        const subscription = activeSubscription(request);
        if (subscription.locked) throw new ApiError("subscription_auto_renew_locked");
        if (autoRenew !== undefined) subscription.autoRenew = autoRenew;
        saved.put("subscription", subscription.id, subscription);
        const message = `Auto-renewal is ${subscription.autoRenew ? "on" : "off"}`;
        return json(bodyOf(UpdateSubscriptionResponseSchema, { message }));
      },
    },
    {
      method: "DELETE",
      path: "/api/subscriptions/v1/subscriptions/{subscription_id}",
      handle(request) {
        const subscription = activeSubscription(request);
        subscription.active = false;
        saved.put("subscription", subscription.id, subscription);
        const message = "Subscription is deactivated";
        return json(bodyOf(DeactivateSubscriptionResponseSchema, { message }));
      },
    },
  ];
}

const updateBody = z.object({ auto_renew: flag.optional() });

/** Whether a call may use the subscription. One without a customer is the merchant's: it may. */
function isOwner(
  customer: CustomerIdentity | undefined,
  { customerExternalId, customerRid }: SubscriptionRecord,
): boolean {
  if (customer?.by === "external_id") return customer.externalId === customerExternalId;
  if (customer?.by === "rid") return customer.rid === customerRid;
  return true;
}
