import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { type ErrorCode, errorOfAbort, GatewayError, gatewayReason, reasonOf } from "../errors.ts";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  LocalizedMessageSchema,
  RetryInfoSchema,
} from "../gen/google/rpc/error_details_pb.ts";
import {
  OutcomeUnknownSchema,
  type UpstreamError,
  UpstreamErrorSchema,
} from "../gen/payments/v1/error_pb.ts";
import { userMessage } from "../upstream/user-message.ts";

/** Trailer that repeats the cursor from which a stream that ended early can be resumed. */
const resumeCursorHeader = "x-resume-cursor";

/**
 * Trailer that tells gRPC clients when to retry (gRPC A6), in milliseconds. `Retry-After` says the
 * same to HTTP clients, in seconds.
 */
const retryPushbackHeader = "grpc-retry-pushback-ms";
const pushedBack: ReadonlySet<ErrorCode> = new Set(["RESOURCE_EXHAUSTED", "UNAVAILABLE"]);

/** Connect's status code for each code of the gateway. */
export const statusCodes: Readonly<Record<ErrorCode, Code>> = {
  CANCELLED: Code.Canceled,
  UNKNOWN: Code.Unknown,
  INVALID_ARGUMENT: Code.InvalidArgument,
  DEADLINE_EXCEEDED: Code.DeadlineExceeded,
  NOT_FOUND: Code.NotFound,
  ALREADY_EXISTS: Code.AlreadyExists,
  PERMISSION_DENIED: Code.PermissionDenied,
  RESOURCE_EXHAUSTED: Code.ResourceExhausted,
  FAILED_PRECONDITION: Code.FailedPrecondition,
  ABORTED: Code.Aborted,
  OUT_OF_RANGE: Code.OutOfRange,
  UNIMPLEMENTED: Code.Unimplemented,
  INTERNAL: Code.Internal,
  UNAVAILABLE: Code.Unavailable,
  UNAUTHENTICATED: Code.Unauthenticated,
};

/**
 * The error of a call as its caller receives it. After `signal` has aborted, an error that is
 * neither the gateway's nor Connect's becomes that of the abort: DEADLINE_EXCEEDED, CANCELLED or the
 * abort's own. Anything else becomes INTERNAL without details, and `onUnknown` receives the original.
 */
export function toGatewayError(
  error: unknown,
  signal: AbortSignal,
  onUnknown: (error: unknown) => void,
): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof ConnectError) {
    return new GatewayError(codeNames.get(error.code) ?? "INTERNAL", error.rawMessage);
  }
  if (signal.aborted) return errorOfAbort(signal);
  onUnknown(error);
  return new GatewayError("INTERNAL", "internal error");
}

const codeNames = new Map(
  Object.entries(statusCodes).map(([name, code]) => [code, name as ErrorCode]),
);

/** Reason of an INTERNAL error that is the caller's mistake: no header names the compression. */
export const compressionNotNamed = "COMPRESSION_NOT_NAMED";

/**
 * An error as the protocols send it, with everything that its caller may learn of it. Every error of
 * the gateway has a `google.rpc.ErrorInfo`: by it a client distinguishes them from errors of its own
 * connection, which do not show the call's outcome.
 * @param language the call's `Accept-Language`, for what the customer may be told; undefined where
 *   nothing is said to customers
 */
export function toConnectError(error: GatewayError, language?: string | null): ConnectError {
  const { upstream, fields, retryAfterMs, outcomeUnknown, resumeCursor } = error.details;
  const out = new ConnectError(clip(error.message), statusCodes[error.code]);
  const add = <Desc extends DescMessage>(desc: Desc, value: MessageInitShape<Desc>) => {
    out.details.push({ desc, value });
  };
  if (outcomeUnknown) add(OutcomeUnknownSchema, outcomeUnknown);
  const metadata: Record<string, string> =
    resumeCursor === undefined ? {} : { resume_cursor: resumeCursor };
  const reason = reasonOf(error) ?? gatewayReason(error.code);
  add(ErrorInfoSchema, { ...reason, metadata });
  if (retryAfterMs !== undefined) {
    add(RetryInfoSchema, { retryDelay: durationFromMs(Math.ceil(retryAfterMs)) });
  }
  if (retryAfterMs !== undefined && pushedBack.has(error.code)) {
    out.metadata.set(retryPushbackHeader, String(retryAfterMs));
    out.metadata.set("retry-after", String(Math.ceil(retryAfterMs / 1_000)));
  }
  if (upstream) add(UpstreamErrorSchema, clipped(upstream));
  if (fields) {
    const fieldViolations = fields
      .slice(0, maxFields)
      .map(({ path, message }) => ({ field: clip(path), description: clip(message) }));
    add(BadRequestSchema, { fieldViolations });
  }
  if (resumeCursor !== undefined && headerValue.test(resumeCursor)) {
    out.metadata.set(resumeCursorHeader, resumeCursor);
  }
  if (language !== undefined) add(LocalizedMessageSchema, { ...userMessage(error, language) });
  return out;
}

/**
 * Longest text in an error, in characters, and most field violations. gRPC sends errors as
 * trailers, and a client drops all trailers if they exceed its limit (8 KiB in Java), so one long
 * text from the upstream service would hide an OutcomeUnknown.
 */
const maxChars = 256;
const maxFields = 20;
const headerValue = /^[\x21-\x7e]+$/;

function clip(text: string): string {
  const wellFormed = text.toWellFormed();
  if (wellFormed.length <= maxChars) return wellFormed;
  // Cutting may split a surrogate pair, which percent-encoding refuses.
  return `${wellFormed.slice(0, maxChars - 1)}…`.toWellFormed();
}

function clipped(upstream: UpstreamError): UpstreamError {
  const { type, httpStatus, unrecognized } = upstream;
  const out = create(UpstreamErrorSchema, { type, httpStatus, unrecognized });
  for (const name of ["code", "message", "param", "paymentId", "errorId"] as const) {
    const text = upstream[name];
    if (text !== undefined) out[name] = clip(text);
  }
  return out;
}
