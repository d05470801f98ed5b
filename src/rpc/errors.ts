import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { DurationSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { type ErrorCode, errorOfAbort, GatewayError } from "../errors.ts";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "../gen/google/rpc/error_details_pb.ts";
import {
  OutcomeUnknownSchema,
  type UpstreamError,
  UpstreamErrorSchema,
} from "../gen/payments/v1/error_pb.ts";

/** The `domain` of every `google.rpc.ErrorInfo`. */
const errorDomain = "payments-gateway";

/** Trailer that repeats where a stream that ended early can be taken up again. */
const resumeCursorHeader = "x-resume-cursor";

/** Trailer by which gRPC clients that retry know when (gRPC A6). */
const retryPushbackHeader = "grpc-retry-pushback-ms";
const pushedBack: ReadonlySet<ErrorCode> = new Set(["RESOURCE_EXHAUSTED", "UNAVAILABLE"]);

/** The status codes of the closed list. */
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
 * What a caller of the RPC edge sees of an error. A GatewayError goes out with its code and details;
 * whatever was thrown because `signal` aborted is DEADLINE_EXCEEDED or CANCELLED; anything else is
 * INTERNAL without a word of its own, and `onUnknown` hears of it.
 */
export function toConnectError(
  error: unknown,
  signal: AbortSignal,
  onUnknown: (error: unknown) => void,
): ConnectError {
  if (error instanceof GatewayError) return fromGatewayError(error);
  if (error instanceof ConnectError) return withErrorInfo(error);
  if (signal.aborted) {
    const reason: unknown = signal.reason;
    if (reason instanceof ConnectError) return withErrorInfo(reason);
    return fromGatewayError(errorOfAbort(signal));
  }
  onUnknown(error);
  return withErrorInfo(new ConnectError("internal error", Code.Internal));
}

/**
 * The same error with a `google.rpc.ErrorInfo`, as every error of the gateway has one: by it a client
 * tells them from those of its own connection, which say nothing of what became of the call.
 */
export function withErrorInfo(error: ConnectError): ConnectError {
  if (reasonOf(error) === undefined) addReason(error, errorCodeOf(error));
  return error;
}

/** Gives an error its `google.rpc.ErrorInfo`. */
export function addReason(error: ConnectError, reason: string): void {
  error.details.push(errorInfo(reason));
}

/** Reason of an INTERNAL that is the caller's mistake. */
export const compressionNotNamed = "COMPRESSION_NOT_NAMED";

/** The name of an error's code, as the closed list has it. */
export function errorCodeOf(error: ConnectError): ErrorCode {
  return codeNames.get(error.code) ?? "INTERNAL";
}

/** The reason that an outgoing error tells in its `google.rpc.ErrorInfo`. */
export function reasonOf(error: ConnectError): string | undefined {
  for (const detail of error.details) {
    if ("desc" in detail && detail.desc === ErrorInfoSchema) {
      return (detail.value as MessageInitShape<typeof ErrorInfoSchema>).reason;
    }
  }
  return undefined;
}

const codeNames = new Map(
  Object.entries(statusCodes).map(([name, code]) => [code, name as ErrorCode]),
);

function fromGatewayError(error: GatewayError): ConnectError {
  const { upstream, fields, retryAfterMs, outcomeUnknown, resumeCursor } = error.details;
  const out = new ConnectError(clip(error.message), statusCodes[error.code]);
  if (outcomeUnknown) {
    out.details.push({ desc: OutcomeUnknownSchema, value: outcomeUnknown });
  }
  const metadata: Record<string, string> =
    resumeCursor === undefined ? {} : { resume_cursor: resumeCursor };
  out.details.push(errorInfo(error.details.reason ?? error.code, metadata));
  if (retryAfterMs !== undefined) {
    out.details.push({ desc: RetryInfoSchema, value: { retryDelay: duration(retryAfterMs) } });
  }
  if (retryAfterMs !== undefined && pushedBack.has(error.code)) {
    out.metadata.set(retryPushbackHeader, String(retryAfterMs));
  }
  if (upstream) {
    out.details.push({ desc: UpstreamErrorSchema, value: clipped(upstream) });
  }
  if (fields) {
    const fieldViolations = fields
      .slice(0, maxFields)
      .map(({ path, message }) => ({ field: clip(path), description: clip(message) }));
    out.details.push({ desc: BadRequestSchema, value: { fieldViolations } });
  }
  if (resumeCursor !== undefined && headerValue.test(resumeCursor)) {
    out.metadata.set(resumeCursorHeader, resumeCursor);
  }
  return out;
}

function errorInfo(reason: string, metadata: Record<string, string> = {}) {
  return { desc: ErrorInfoSchema, value: { reason, domain: errorDomain, metadata } };
}

/**
 * gRPC sends errors as trailers, and a client drops trailers beyond its limit (8 KiB in Java) with
 * all that they say, so that one long text of the upstream would hide an OutcomeUnknown.
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
  const out = create(UpstreamErrorSchema, { type: upstream.type, httpStatus: upstream.httpStatus });
  for (const name of ["code", "message", "param", "paymentId", "errorId"] as const) {
    const text = upstream[name];
    if (text !== undefined) out[name] = clip(text);
  }
  return out;
}

function duration(ms: number) {
  const whole = Math.max(0, Math.ceil(ms));
  return create(DurationSchema, {
    seconds: BigInt(Math.floor(whole / 1000)),
    nanos: (whole % 1000) * 1_000_000,
  });
}
