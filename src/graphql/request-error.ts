import { GraphQLError, type GraphQLErrorOptions } from "graphql";

/** A request that this edge refuses. Its message quotes nothing that the caller sent. */
export class RequestError extends GraphQLError {
  /** @param status of HTTP, where the whole request fails for it */
  constructor(
    message: string,
    code: string,
    { status, nodes }: { status?: number } & Pick<GraphQLErrorOptions, "nodes"> = {},
  ) {
    const http = status !== undefined && { http: { status } };
    super(message, { nodes, extensions: { code, ...http } });
  }
}
