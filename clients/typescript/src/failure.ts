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
 * What a failed call means to its caller. `kind` is what to switch on:
 *
 * - `outcome_unknown`: the money may have moved. Do not repeat the call; watch `externalId`.
 * - `rejected`: the payments service said no, and why (`upstream`). Nothing moved.
 * - `invalid`: the request is wrong (`fields`). Nothing was sent.
 * - `not_now`: nothing was done; the same call may succeed after `retryAfterMs`, if it is given.
 * - `not_allowed`: the credentials are missing, expired or not enough.
 * - `cursor_lost`: the cursor is older than what is kept. Read the present state, and watch anew.
 * - `other`: none of these, such as a cancelled call or a fault of the gateway.
 */
export type Failure = { readonly code: Code; readonly message: string } & (
  | { readonly kind: "outcome_unknown"; readonly externalId: string }
  | { readonly kind: "rejected"; readonly upstream: UpstreamError }
  | {
      readonly kind: "invalid";
      readonly fields: readonly { readonly path: string; readonly message: string }[];
      readonly upstream?: UpstreamError;
    }
  | { readonly kind: "not_now"; readonly retryAfterMs?: number; readonly upstream?: UpstreamError }
  | { readonly kind: "not_allowed"; readonly upstream?: UpstreamError }
  | { readonly kind: "cursor_lost" }
  | { readonly kind: "other"; readonly reason?: string }
);

/** Reads whatever a call threw: its code and the details that the gateway attached. */
export function failureOf(thrown: unknown): Failure {
  const error = ConnectError.from(thrown);
  const { code, rawMessage: message } = error;
  // First of all: whatever else the error says, this call must not be repeated.
  const [unknown] = error.findDetails(OutcomeUnknownSchema);
  if (unknown) return { kind: "outcome_unknown", code, message, externalId: unknown.externalId };

  const [upstream] = error.findDetails(UpstreamErrorSchema);
  const told = upstream ? { upstream } : {};
  switch (code) {
    case Code.InvalidArgument:
      return { kind: "invalid", code, message, fields: fieldsOf(error), ...told };
    case Code.Unavailable:
    case Code.ResourceExhausted:
    case Code.Aborted:
      return { kind: "not_now", code, message, ...retryAfter(error), ...told };
    case Code.Unauthenticated:
    case Code.PermissionDenied:
      return { kind: "not_allowed", code, message, ...told };
    case Code.OutOfRange:
      return { kind: "cursor_lost", code, message };
  }
  if (upstream) return { kind: "rejected", code, message, upstream };
  const [info] = error.findDetails(ErrorInfoSchema);
  return { kind: "other", code, message, ...(info ? { reason: info.reason } : {}) };
}

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
