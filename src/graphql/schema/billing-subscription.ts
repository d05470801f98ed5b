import { SubscriptionService } from "../../gen/payments/v1/subscription_service_pb.ts";
import { builder } from "./builder.ts";
import { mutation } from "./mutation.ts";

const SubscriptionMessage = builder
  .objectRef<{ message?: string | undefined }>("SubscriptionMessage")
  .implement({
    description: "What the payments service says of a change to a billing subscription.",
    fields: (t) => ({
      // Not nullable, as in the error types, so that one selection may ask for both.
      message: t.string({
        description: "The service's own text; empty where it gave none.",
        nullable: false,
        resolve: ({ message }) => message ?? "",
      }),
    }),
  });

mutation(SubscriptionService.method.updateSubscription, {
  description: "Turns the automatic renewal of a customer's billing subscription on or off.",
  success: SubscriptionMessage,
  run: (core, request, call) => core.updateSubscription(request, call),
});

mutation(SubscriptionService.method.deactivateSubscription, {
  description: "Deactivates a customer's billing subscription.",
  success: SubscriptionMessage,
  run: (core, request, call) => core.deactivateSubscription(request, call),
});
