import { Code, ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "./gen/google/rpc/error_details_pb.ts";
import {
  OutcomeUnknownSchema,
  type UpstreamError,
  UpstreamErrorSchema,
} from "./gen/payments/v1/error_pb.ts";

/**
 * What a failed call means to its caller. Switch on `kind`:
 *
 * - `outcome_unknown`: the money may have moved. Do not repeat the call; watch `externalId`.
 * - `no_answer`: the gateway did not answer: the connection broke, or the caller's deadline passed.
 *   A call that moves money may have been made: repeat it with the same `Idempotency-Key`, or
 *   watch.
 * - `rejected`: the payments service rejected the call; `upstream` says why. This call moved
 *   nothing.
 * - `invalid`: the gateway refused the request (`fields`) and sent nothing to the service.
 * - `not_now`: this call moved nothing; the same one may succeed after `retryAfterMs`, if given.
 * - `not_allowed`: the gateway refused the caller: credentials are missing, expired or not enough.
 * - `cursor_lost`: the cursor is older than the events kept. Read the current state and watch anew.
 * - `other`: anything else, such as an unknown payment or a fault of the gateway.
 *
 * A decline is `rejected`, or no failure at all: the service may also report it in a normal answer.
 */
export type Failure = { readonly code: Code; readonly message: string } & (
  | { readonly kind: "outcome_unknown"; readonly externalId: string }
  | { readonly kind: "no_answer" }
  | { readonly kind: "rejected"; readonly upstream: UpstreamError }
  | {
      readonly kind: "invalid";
      readonly fields: readonly { readonly path: string; readonly message: string }[];
    }
  | { readonly kind: "not_now"; readonly retryAfterMs?: number; readonly upstream?: UpstreamError }
  | { readonly kind: "not_allowed" }
  | { readonly kind: "cursor_lost" }
  | { readonly kind: "other"; readonly reason?: string }
);

/** Classifies anything that a call threw, by its code and the details that the gateway attached. */
export function failureOf(thrown: unknown): Failure {
  const error = ConnectError.from(thrown);
  const { code, rawMessage: message } = error;
  // Check this first: whatever else the error contains, this call must not be repeated.
  const [unknown] = error.findDetails(OutcomeUnknownSchema);
  if (unknown) return { kind: "outcome_unknown", code, message, externalId: unknown.externalId };

  const info = error.findDetails(ErrorInfoSchema).find(({ domain }) => domains.has(domain));
  // Every error of the gateway has an ErrorInfo. Without one, the connection, a proxy or the caller
  // ended the call. Anything that is not a ConnectError, such as a bug, becomes `other`.
  if (!info && thrown instanceof ConnectError && saysNothing.has(code))
    return { kind: "no_answer", code, message };

  const [upstream] = error.findDetails(UpstreamErrorSchema);
  if (notNow.has(code)) {
    const told = upstream ? { upstream } : {};
    return { kind: "not_now", code, message, ...retryAfter(error), ...told };
  }
  if (upstream) return { kind: "rejected", code, message, upstream };
  switch (code) {
    case Code.InvalidArgument:
      return { kind: "invalid", code, message, fields: fieldsOf(error) };
    case Code.Unauthenticated:
    case Code.PermissionDenied:
      return { kind: "not_allowed", code, message };
    case Code.OutOfRange:
      return { kind: "cursor_lost", code, message };
  }
  return { kind: "other", code, message, ...(info ? { reason: info.reason } : {}) };
}

/** Who defines the reasons of the gateway's errors: itself, or the service whose code it is. */
const domains: ReadonlySet<string> = new Set(["payments-gateway", "payments-service"]);

/**
 * Codes that a connection that broke during a call may also end with. Connect's client has
 * `InvalidArgument` for an answer that breaks off, and `ResourceExhausted` for one that is too large
 * for it or a connection that was cut for its rate.
 */
const saysNothing: ReadonlySet<Code> = new Set([
  Code.Unavailable,
  Code.Internal,
  Code.Canceled,
  Code.DeadlineExceeded,
  Code.Unknown,
  Code.Aborted,
  Code.InvalidArgument,
  Code.ResourceExhausted,
]);

const notNow: ReadonlySet<Code> = new Set([Code.Unavailable, Code.ResourceExhausted, Code.Aborted]);

function fieldsOf(error: ConnectError) {
  return error
    .findDetails(BadRequestSchema)
    .flatMap(({ fieldViolations }) => fieldViolations)
    .map(({ field, description }) => ({ path: field, message: description }));
}

function retryAfter(error: ConnectError): { retryAfterMs?: number } {
  const delay = error.findDetails(RetryInfoSchema)[0]?.retryDelay;
  if (!delay) return {};
  return { retryAfterMs: Number(delay.seconds) * 1_000 + Math.ceil(delay.nanos / 1_000_000) };
}
