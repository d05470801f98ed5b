import { GraphQLError, type GraphQLErrorOptions } from "graphql";

/** A request that this edge refuses. Its message quotes nothing that the caller sent. */
export class RequestError extends GraphQLError {
  constructor(
    message: string,
    code: string,
    { status, ofGraphql, nodes }: RequestErrorOptions = {},
  ) {
    const http = status !== undefined && { http: { status, ...(ofGraphql && { spec: true }) } };
    super(message, { nodes, extensions: { code, ...http } });
  }
}

export interface RequestErrorOptions extends Pick<GraphQLErrorOptions, "nodes"> {
  /** Of HTTP, where the whole request fails for it. */
  readonly status?: number;
  /**
   * It is a request error of GraphQL's own algorithms: `application/json` is answered 200 for it, and
   * `application/graphql-response+json` with the status (GraphQL over HTTP, Status Codes).
   */
  readonly ofGraphql?: boolean;
}
