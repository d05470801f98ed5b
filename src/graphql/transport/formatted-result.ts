import type { FormattedExecutionResult, GraphQLError } from "graphql";

type FormattedError = NonNullable<FormattedExecutionResult["errors"]>[number];

/** An error as a client gets it where HTTP statuses mean nothing. */
export function withoutHttp(error: GraphQLError): FormattedError {
  const { extensions, ...rest } = error.toJSON();
  if (!extensions) return rest;
  const { http: _, ...others } = extensions;
  return { ...rest, extensions: others };
}
