import type { FormattedExecutionResult, GraphQLError } from "graphql";

type FormattedError = NonNullable<FormattedExecutionResult["errors"]>[number];

/** An error as a client receives it, without the HTTP status and headers in its extensions. */
export function withoutHttp(error: GraphQLError): FormattedError {
  const { extensions, ...rest } = error.toJSON();
  if (!extensions) return rest;
  const { http: _, ...others } = extensions;
  return { ...rest, extensions: others };
}
