import { eventStreamType, graphqlEvents, multipartResults } from "./stream-format.ts";

/** What a client takes, by its `Accept` header. */
export type Accepted = ReturnType<typeof acceptedOf>;

export function acceptedOf(accept = "*/*") {
  const types = typesOf(accept);
  const isInParts = types.find((type) => streamTypes.has(type)) === multipartType;
  const takesEvents = types.some((type) => eventStreamTypes.has(type));
  const firstOfResult = types.find((type) => resultTypes.has(type));
  return {
    /** The format of a subscription's stream; undefined if the client takes none. */
    streamFormat: isInParts ? multipartResults : takesEvents ? graphqlEvents : undefined,
    /** Whether it takes a single result in no other form than that of a stream. */
    onlyEvents: types.every((type) => type === eventStreamType || type === "text/*"),
    /** The media type of a single result: JSON, unless another type of GraphQL comes before it. */
    resultType: firstOfResult === graphqlType ? graphqlType : jsonType,
  };
}

/** The media type of GraphQL over HTTP whose status shows whether the operation was executed. */
export const graphqlType = "application/graphql-response+json";

export const jsonType = "application/json";
const multipartType = "multipart/mixed;subscriptionspec=1.0";
const resultTypes = new Set([graphqlType, jsonType, "application/*", "*/*"]);
const eventStreamTypes = new Set([eventStreamType, "text/*", "*/*"]);
const streamTypes = new Set([multipartType, eventStreamType]);

/** The media types of an `Accept` header without parameters, except for Apollo's multipart type. */
function typesOf(accept: string): string[] {
  return accept.split(",").map((each) => {
    const [type = "", ...parameters] = each.split(";").map((text) => text.trim().toLowerCase());
    const forSubscriptions = parameters.some((text) => /^subscriptionspec="?1\.0"?$/.test(text));
    return type === "multipart/mixed" && forSubscriptions ? multipartType : type;
  });
}
