import { builder } from "./builder.ts";
import "./scalars.ts";
import "./payment.ts";
import "./payout.ts";
import "./wallet.ts";
import "./billing-subscription.ts";
import "./operation.ts";
import "./event.ts";
import "./rate-limit.ts";

builder.queryType({ description: "Reads." });
builder.mutationType({
  description:
    "Calls that change something. Each takes one `input` and answers with a union of its success " +
    "type and the error types; what concerns the whole request goes into `errors`.",
});
builder.subscriptionType({
  description:
    "Live updates, over Server-Sent Events (`Accept: text/event-stream`) and over WebSocket " +
    "(`graphql-transport-ws`).",
});

/** The GraphQL schema, as `schema.graphql` prints it. */
export const schema = builder.toSchema();
