import { GraphQLError, type GraphQLErrorOptions } from "graphql";

/** An error for a request that this edge rejects. Its message quotes nothing from the request. */
export class RequestError extends GraphQLError {
  constructor(
    message: string,
    code = "BAD_REQUEST",
    { status = 400, ofGraphql, allow, ...where }: RequestErrorOptions = {},
  ) {
    const headers = allow !== undefined && { headers: { allow } };
    const spec = ofGraphql && { spec: true };
    super(message, { ...where, extensions: { code, http: { status, ...spec, ...headers } } });
  }
}

interface RequestErrorOptions extends Pick<GraphQLErrorOptions, "nodes" | "source" | "positions"> {
  /** The HTTP status. Default: 400. */
  readonly status?: number;
  /**
   * Whether it is a request error as GraphQL defines it: the response has status 200 as
   * `application/json`, and `status` as `application/graphql-response+json` (GraphQL over HTTP,
   * Status Codes).
   */
  readonly ofGraphql?: boolean;
  /** The methods that the address takes. */
  readonly allow?: string;
}
