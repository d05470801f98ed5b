import { GraphQLError } from "graphql";
import type { Logger } from "pino";
import { type ErrorCode, GatewayError } from "../errors.ts";
import { ErrorTypeSchema, type UpstreamError } from "../gen/payments/v1/error_pb.ts";
import { overloadedReason } from "../net/overloaded.ts";
import { graphqlSpelling, messageOf, type Spelling, spelled } from "./field-names.ts";
import { RequestError } from "./request-error.ts";
import { withoutHints, withoutValues } from "./without-values.ts";

/** What a GatewayError is to a GraphQL client. */
interface Mapping {
  /** `extensions.code`. */
  readonly code: string;
  /** `extensions.code` where the payments service's own error stands behind it. */
  readonly upstream: string;
  /** HTTP status, where the whole request fails for it. */
  readonly status: number;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
}

/** Every code that the gateway has, and what it is called here. */
export const mappings: Readonly<Record<ErrorCode, Mapping>> = {
  CANCELLED: both("CANCELLED", 499, true),
  UNKNOWN: { code: "UPSTREAM_ERROR", upstream: "UPSTREAM_ERROR", status: 502, retryable: false },
  INVALID_ARGUMENT: both("BAD_USER_INPUT", 400, false),
  DEADLINE_EXCEEDED: both("DEADLINE_EXCEEDED", 504, true),
  NOT_FOUND: both("NOT_FOUND", 404, false),
  ALREADY_EXISTS: { code: "CONFLICT", upstream: "UPSTREAM_ERROR", status: 409, retryable: false },
  PERMISSION_DENIED: both("FORBIDDEN", 403, false),
  RESOURCE_EXHAUSTED: both("RATE_LIMITED", 429, true),
  FAILED_PRECONDITION: {
    code: "FAILED_PRECONDITION",
    upstream: "UPSTREAM_ERROR",
    status: 400,
    retryable: false,
  },
  ABORTED: { code: "CONFLICT", upstream: "UPSTREAM_ERROR", status: 409, retryable: true },
  OUT_OF_RANGE: both("CURSOR_EXPIRED", 400, false),
  UNIMPLEMENTED: both("NOT_IMPLEMENTED", 501, false),
  INTERNAL: {
    code: "INTERNAL_SERVER_ERROR",
    upstream: "UPSTREAM_ERROR",
    status: 500,
    retryable: false,
  },
  UNAVAILABLE: both("UPSTREAM_UNAVAILABLE", 503, true),
  UNAUTHENTICATED: both("UNAUTHENTICATED", 401, false),
};

function both(code: string, status: number, retryable: boolean): Mapping {
  return { code, upstream: code, status, retryable };
}

/** Seconds until a retry may succeed, rounded up; undefined when nothing is known. */
export function retryAfterSeconds(error: GatewayError): number | undefined {
  const { retryAfterMs } = error.details;
  return retryAfterMs === undefined ? undefined : Math.ceil(retryAfterMs / 1000);
}

export interface ErrorFormatterOptions {
  /** Whether GraphQL's own errors may suggest names of the schema. Default: true. */
  readonly hints?: boolean;
  /** How fields are named. Default: as in the schema. */
  readonly spelling?: Spelling;
}

/**
 * Any error as a client may see it, in `errors`. GatewayErrors go by the table; GraphQL's own keep
 * their text less the values that it quotes, since a value may be a secret; all else is masked, and
 * logged. An error that stands for the whole request carries its HTTP status.
 */
export function createErrorFormatter(
  log: Logger,
  { hints = true, spelling = graphqlSpelling }: ErrorFormatterOptions = {},
): (error: unknown) => GraphQLError {
  return (error) => {
    const located = error instanceof GraphQLError ? error : undefined;
    const cause = originOf(error);
    if (cause instanceof GatewayError) return fromGateway(cause, located, spelling);
    if (cause instanceof RequestError) return cause;
    if (cause instanceof GraphQLError) {
      const clean = withoutValues(cause, located ?? cause);
      return hints ? clean : withoutHints(clean);
    }
    if (cause instanceof SyntaxError && !located) return notJson();
    log.error({ err: cause }, "unexpected error: answered as INTERNAL_SERVER_ERROR");
    return fromGateway(new GatewayError("INTERNAL", "internal error"), located, spelling);
  };
}

/** The `extensions.code` that a client sees of an error, masked or not yet. */
export function codeOf(error: unknown): string {
  const cause = originOf(error);
  if (cause instanceof GatewayError) {
    const { code, upstream } = mappings[cause.code];
    return cause.details.upstream ? upstream : code;
  }
  if (!(cause instanceof GraphQLError)) return mappings.INTERNAL.code;
  const { code } = cause.extensions;
  return typeof code === "string" ? code : mappings.INVALID_ARGUMENT.code;
}

/** The error that a resolver threw, inside the layers that the executor put around it. */
function originOf(error: unknown): unknown {
  let origin = error;
  while (origin instanceof GraphQLError && origin.originalError) origin = origin.originalError;
  return origin;
}

function fromGateway(
  error: GatewayError,
  located: GraphQLError | undefined,
  spelling: Spelling,
): GraphQLError {
  const mapping = mappings[error.code];
  const { upstream, outcomeUnknown, reason, resumeCursor } = error.details;
  const fields = error.details.fields && spelled(error.details.fields, spelling);
  const seconds = retryAfterSeconds(error);
  return new GraphQLError(fields ? messageOf(error, fields) : error.message, {
    ...(located?.nodes && { nodes: located.nodes }),
    ...(located?.path && { path: located.path }),
    extensions: {
      code: upstream ? mapping.upstream : mapping.code,
      ...(reason !== undefined && { reason }),
      ...(fields && { fields }),
      ...(upstream && { upstream: upstreamExtension(upstream) }),
      ...(seconds !== undefined && { retryAfterSeconds: seconds }),
      ...(outcomeUnknown && { outcomeUnknown }),
      ...(resumeCursor !== undefined && { resumeCursor }),
      ...(!located && { http: reason === overloadedReason ? httpOfOverload : httpOf(mapping) }),
    },
  });
}

/** What proxies and clients of HTTP know for it: the budget of the account is 429. */
const httpOfOverload = { status: 503, headers: { "retry-after": "1" } };

function httpOf({ status }: Mapping) {
  return { status, ...(status === 401 && { headers: { "www-authenticate": "Bearer" } }) };
}

/** The payments service's Error object, of which absent members are left out. */
function upstreamExtension(error: UpstreamError) {
  const { code, param, paymentId, errorId } = error;
  const type = errorTypeName(error);
  return {
    ...(code !== undefined && { code }),
    ...(type !== undefined && { type }),
    ...(param !== undefined && { param }),
    ...(paymentId !== undefined && { paymentId }),
    ...(errorId !== undefined && { errorId }),
  };
}

/** As the enum ErrorType has it. */
function errorTypeName(error: UpstreamError): string | undefined {
  const known = ErrorTypeSchema.values.find(({ number }) => number !== 0 && number === error.type);
  return known?.name.slice(ErrorTypeSchema.sharedPrefix?.length);
}

/** A GET whose `variables` are no JSON: the parser's own message would quote them. */
function notJson(): GraphQLError {
  const message = "variables and extensions must be JSON";
  return new RequestError(message, "BAD_REQUEST", { status: 400 });
}
