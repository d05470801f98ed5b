import { create, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import type { CustomerIdentity } from "../gen/payments/v1/customer_pb.ts";
import {
  DeactivateSubscriptionRequestSchema,
  DeactivateSubscriptionResponseSchema,
  SubscriptionService,
  UpdateSubscriptionRequestSchema,
  UpdateSubscriptionResponseSchema,
} from "../gen/payments/v1/subscription_service_pb.ts";
import { type DecodeOptions, decode } from "../wire/wire.ts";
import type { Client } from "./client.ts";
import { type Endpoint, endpointOf } from "./endpoint.ts";
import { bodyOf, escaped, withQuery } from "./rest-call.ts";
import type { Upstream } from "./upstream.ts";

type SubscriptionCalls = Pick<Upstream, "updateSubscription" | "deactivateSubscription">;

/** Spec, Endpoints, Subscriptions. */
export function subscriptionCalls({ send }: Client): SubscriptionCalls {
  return {
    async updateSubscription(request, options) {
      const schema = UpdateSubscriptionRequestSchema;
      const call = {
        endpoint: update,
        target: targetOf(update, request),
        customer: request.customer,
        schema,
        request,
        body: bodyOf(schema, request),
        read: reader(UpdateSubscriptionResponseSchema),
        successCodes,
      };
      return send(call, options);
    },

    async deactivateSubscription(request, options) {
      const call = {
        endpoint: deactivate,
        target: targetOf(deactivate, request),
        customer: request.customer,
        schema: DeactivateSubscriptionRequestSchema,
        request,
        read: reader(DeactivateSubscriptionResponseSchema),
        successCodes,
      };
      return send(call, options);
    },
  };
}

const update = endpointOf(SubscriptionService.method.updateSubscription);
const deactivate = endpointOf(SubscriptionService.method.deactivateSubscription);

/** Of the spec's codes these tell of what was asked for: with a 2xx status it was done. */
const successCodes: ReadonlySet<string> = new Set([
  "subscription_successful",
  "unsubscribed_successfully",
]);

function targetOf(
  endpoint: Endpoint,
  request: { subscriptionId: string; customer?: CustomerIdentity | undefined },
) {
  const id = escaped("subscription_id", request.subscriptionId);
  // A function, since `$` in a replacement text would mean something.
  const path = endpoint.path.replace("{subscription_id}", () => id);
  return withQuery(path, { external_id: request.customer?.externalId });
}

/** The answer is a message for people: without a body it is a yes without one. */
function reader<Desc extends DescMessage>(schema: Desc) {
  return (text: string, options: DecodeOptions): MessageShape<Desc> =>
    text === "" ? create(schema) : decode(schema, text, options);
}
