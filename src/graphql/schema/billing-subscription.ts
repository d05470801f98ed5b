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

mutation("updateSubscription", SubscriptionMessage);
mutation("deactivateSubscription", SubscriptionMessage);
