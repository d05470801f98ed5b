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
import { bodyOf, type Endpoint, endpointOf, escaped, withQuery } from "./rest-call.ts";
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

/** Codes of the spec that confirm what was asked for: with a 2xx status they mean success. */
const successCodes: ReadonlySet<string> = new Set([
  "subscription_successful",
  "unsubscribed_successfully",
]);

function targetOf(
  endpoint: Endpoint,
  request: { subscriptionId: string; customer?: CustomerIdentity | undefined },
) {
  const id = escaped("subscription_id", request.subscriptionId);
  // A replacer function, since `$` has a special meaning in a replacement text.
  const path = endpoint.path.replace("{subscription_id}", () => id);
  return withQuery(path, { external_id: request.customer?.externalId });
}

/** The answer is a message for people; an empty body means success without a message. */
function reader<Desc extends DescMessage>(schema: Desc) {
  return (text: string, options: DecodeOptions): MessageShape<Desc> =>
    text === "" ? create(schema) : decode(schema, text, options);
}
