import { STATUS_CODES } from "node:http";
import { GraphQLError, type GraphQLErrorOptions } from "graphql";
import {
  type ErrorCode,
  type FieldViolation,
  GatewayError,
  reasonOf,
  textOfFields,
} from "../errors.ts";
import { ErrorTypeSchema, type UpstreamError } from "../gen/payments/v1/error_pb.ts";
import { contractFiles } from "../model/contract.ts";
import { overloadedReason } from "../net/overloaded.ts";
import type { Logger } from "../report.ts";
import { userMessage } from "../upstream/user-message.ts";
import { messageWithoutValues, withoutValues } from "./without-values.ts";

/** How a GatewayError appears to a GraphQL client. */
interface Mapping {
  /** `extensions.code`. */
  readonly code: string;
  /** `extensions.code` if the error comes from an Error object of the payments service. */
  readonly upstream: string;
  /** The HTTP status, if the error fails the whole request. */
  readonly status: number;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
}

/** How each code of a GatewayError appears in GraphQL. */
export const mappings: Readonly<Record<ErrorCode, Mapping>> = {
  CANCELLED: mapping("CANCELLED", 499, true),
  UNKNOWN: mapping("UPSTREAM_ERROR", 502, false),
  INVALID_ARGUMENT: mapping("BAD_USER_INPUT", 400, false),
  DEADLINE_EXCEEDED: mapping("DEADLINE_EXCEEDED", 504, true),
  NOT_FOUND: mapping("NOT_FOUND", 404, false),
  ALREADY_EXISTS: mapping("CONFLICT", 409, false, "UPSTREAM_ERROR"),
  PERMISSION_DENIED: mapping("FORBIDDEN", 403, false),
  RESOURCE_EXHAUSTED: mapping("RATE_LIMITED", 429, true),
  FAILED_PRECONDITION: mapping("FAILED_PRECONDITION", 400, false, "UPSTREAM_ERROR"),
  ABORTED: mapping("CONFLICT", 409, true, "UPSTREAM_ERROR"),
  OUT_OF_RANGE: mapping("CURSOR_EXPIRED", 400, false),
  UNIMPLEMENTED: mapping("NOT_IMPLEMENTED", 501, false),
  INTERNAL: mapping("INTERNAL_SERVER_ERROR", 500, false, "UPSTREAM_ERROR"),
  UNAVAILABLE: mapping("UPSTREAM_UNAVAILABLE", 503, true),
  UNAUTHENTICATED: mapping("UNAUTHENTICATED", 401, false),
};

function mapping(code: string, status: number, retryable: boolean, upstream = code): Mapping {
  return { code, upstream, status, retryable };
}

/** An error for a request that this edge rejects. Its message quotes nothing from the request. */
export class RequestError extends GraphQLError {
  constructor(
    message: string,
    code = "BAD_REQUEST",
    { status = 400, ofGraphql, allow, ...where }: RequestErrorOptions = {},
  ) {
    const headers = allow !== undefined && { headers: { allow } };
    const spec = ofGraphql && { spec: true };
    super(message, { ...where, extensions: withHttp({ code }, { status, ...spec, ...headers }) });
  }
}

/** Adds the head of the response that an error fails as a whole. Yoga reads it; JSON lacks it. */
function withHttp<Extensions extends object>(extensions: Extensions, http: object): Extensions {
  return Object.defineProperty(extensions, "http", { value: http });
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

/** Refuses a request for what GraphQL.js found in its document or its variables. */
export function refusalFor(error: GraphQLError, code = "BAD_USER_INPUT"): RequestError {
  const { nodes, source, positions } = error;
  const where = { nodes, source, positions };
  return new RequestError(messageWithoutValues(error), code, { ofGraphql: true, ...where });
}

/** Seconds until a retry may succeed, rounded up; undefined if the error does not say. */
export function retryAfterSeconds(error: unknown): number | undefined {
  const cause = originOf(error);
  if (!(cause instanceof GatewayError)) return undefined;
  const { retryAfterMs } = cause.details;
  return retryAfterMs === undefined ? undefined : Math.ceil(retryAfterMs / 1000);
}

/**
 * Formats any error for `errors` in a response. GatewayErrors follow `mappings`. Errors of
 * GraphQL.js keep their text without the values that it quotes, since a value may be a secret. All
 * others are masked and logged. An error that fails the whole request carries its HTTP status. With
 * the `Accept-Language` of a request, its GatewayErrors say what the customer may be told.
 * @param spelling how fields are named. Default: as in the schema
 */
export function createErrorFormatter(
  log: Logger,
  spelling: Spelling = graphqlSpelling,
): FormatError {
  return (error, acceptLanguage) => {
    const located = error instanceof GraphQLError ? error : undefined;
    const cause = originOf(error);
    if (cause instanceof GatewayError) return fromGateway(cause, located, spelling, acceptLanguage);
    if (cause instanceof RequestError) return cause;
    if (located && cause instanceof GraphQLError) return withoutValues(located);
    log.error({ err: cause }, "unexpected error: answered as INTERNAL_SERVER_ERROR");
    return fromGateway(unexpected, located, spelling, acceptLanguage);
  };
}

/**
 * @param acceptLanguage the header of the request, null if it has none; undefined if the customer
 * is told nothing, as for the end of a stream
 */
export type FormatError = (error: unknown, acceptLanguage?: string | null) => GraphQLError;

/** The `extensions.code` that a client sees for an error, whether it is masked yet or not. */
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
  acceptLanguage: string | null | undefined,
): GraphQLError {
  const { upstream, outcomeUnknown, resumeCursor } = error.details;
  const reason = reasonOf(error)?.reason;
  const fields = error.details.fields && spelled(error.details.fields, spelling);
  const seconds = retryAfterSeconds(error);
  const { retryable: _, ...http } = headOf(error);
  // What is undefined is left out of JSON.
  const extensions = {
    code: codeOf(error),
    reason,
    userMessage:
      acceptLanguage === undefined ? undefined : userMessage(error, acceptLanguage).message,
    fields,
    upstream: upstream && upstreamExtension(upstream),
    retryAfterSeconds: seconds,
    outcomeUnknown,
    resumeCursor,
  };
  return new GraphQLError(fields ? messageOf(error, fields) : error.message, {
    nodes: located?.nodes,
    path: located?.path,
    extensions: located ? extensions : withHttp(extensions, http),
  });
}

/** The head of a response that an error fails as a whole, and whether a retry may succeed. */
export function headOf(error: unknown) {
  const { code, details } = error instanceof GatewayError ? error : unexpected;
  const { status, retryable } = mappings[code];
  const seconds = retryAfterSeconds(error);
  const headers: Readonly<Record<string, string>> = {
    ...(status === 401 && { "www-authenticate": "Bearer" }),
    ...(seconds !== undefined && { "retry-after": String(seconds) }),
  };
  // Overload is 503, as HTTP proxies and clients expect; 429 is for the account's rate budget.
  return { status: details.reason === overloadedReason ? 503 : status, headers, retryable };
}

/** What stands for an error that is masked. */
const unexpected = new GatewayError("INTERNAL", "internal error");

/** The payments service's Error object. */
function upstreamExtension(error: UpstreamError) {
  const { code, param, paymentId, errorId } = error;
  // Undefined if it is unset or unknown.
  const type = error.type === 0 ? undefined : ErrorTypeSchema.value[error.type]?.localName;
  const unrecognized = error.unrecognized.map(({ field, value }) => ({ field, value }));
  return {
    ...{ code, type, param, paymentId, errorId },
    ...(unrecognized.length > 0 && { unrecognized }),
  };
}

export const problemType = "application/problem+json";

/** A formatted error as problem details (RFC 9457), with its extensions as members beside them. */
export function problemOf(error: GraphQLError, status: number): string {
  const { message: detail, extensions } = error;
  const title = STATUS_CODES[status];
  return JSON.stringify({ type: "about:blank", title, status, detail, ...extensions });
}

/** Rewrites proto field names in a text to the names that the callers of an edge use. */
type Spelling = (text: string) => string;

/** Field names of GraphQL arguments and inputs, in a path or within a sentence. */
export const graphqlSpelling: Spelling = (text) =>
  text.replace(/[a-z0-9_]+/g, (word) => names.get(word) ?? word);

/** Field names of the query parameters of `/watch`. */
export const watchSpelling: Spelling = (text) => text.replace(/\bafter_cursor\b/g, "after");

/** Rewrites the rejected fields of a request: `toPath` converts paths, `spelling` messages. */
export function spelled(
  fields: readonly FieldViolation[],
  spelling: Spelling,
  toPath: (path: string) => string = spelling,
): FieldViolation[] {
  return fields.map(({ path, message }) => ({ path: toPath(path), message: spelling(message) }));
}

/** The message of an error. One that lists its fields is written anew from `fields`. */
export function messageOf(error: GatewayError, fields: readonly FieldViolation[]): string {
  const isMadeOfThem = error.details.reason === "INVALID_FIELDS" && fields.length > 0;
  return isMadeOfThem ? textOfFields(fields) : error.message;
}

const names = new Map<string, string>();
for (const file of contractFiles) {
  for (const { fields, oneofs } of file.messages) {
    for (const { name, localName } of [...fields, ...oneofs]) names.set(name, localName);
  }
}
names.set("after_cursor", "after");
names.set("page_token", "after");
