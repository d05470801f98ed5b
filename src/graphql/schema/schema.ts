import { defaultFieldResolver, type GraphQLSchema, isObjectType } from "graphql";
import { mask } from "../../secrets/redact.ts";
import { builder } from "./builder.ts";
import type { SecretExtensions } from "./message-type.ts";
import "./scalars.ts";
import "./payment.ts";
import "./payout.ts";
import "./wallet.ts";
import "./billing-subscription.ts";
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
    "Live updates, over Server-Sent Events (`Accept: text/event-stream`), over WebSocket " +
    "(`graphql-transport-ws`), and by Apollo's `multipart/mixed;subscriptionSpec=1.0`.",
});

/** The GraphQL schema, which `schema.graphql` prints sorted: a start has no time to sort it. */
export const schema = builder.toSchema({ sortSchema: false });

/** The same schema, in which the values of secret fields are masked: for people who look on. */
export function createMaskedSchema(): GraphQLSchema {
  const masked = builder.toSchema({ sortSchema: false });
  for (const type of Object.values(masked.getTypeMap())) {
    if (!isObjectType(type)) continue;
    for (const field of Object.values(type.getFields())) {
      if (!(field.extensions as SecretExtensions).secret) continue;
      const { resolve = defaultFieldResolver } = field;
      field.resolve = (...args) => ((resolve(...args) ?? "") === "" ? null : mask);
    }
  }
  return masked;
}
