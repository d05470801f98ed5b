import { create } from "@bufbuild/protobuf";
import { ErrorType, type UpstreamError, UpstreamErrorSchema } from "../gen/payments/v1/error_pb.ts";
import { maskCardNumbers } from "../secrets/mask-card-numbers.ts";
import { wireFields } from "../wire/plan.ts";
import { type DecodeOptions, decode, type WireFault } from "../wire/wire.ts";
import { readingOf } from "./error-codes.ts";

/**
 * Reads a body as an Error object; undefined if it has no code, message, type or error id, or only
 * empty ones. Of the faults, only a type that is not known is reported.
 */
export function readErrorObject(
  text: string,
  { onFault, hideSecrets }: DecodeOptions = {},
): UpstreamError | undefined {
  let error: UpstreamError;
  const unrecognized: WireFault[] = [];
  try {
    error = decode(UpstreamErrorSchema, text, {
      hideSecrets,
      onFault: (fault) => void (fault.kind === "unrecognized" && unrecognized.push(fault)),
    });
  } catch {
    return undefined;
  }
  const { code, message, type, errorId } = error;
  const empty = !code && !message && !errorId && type === UNSPECIFIED;
  if (empty) return undefined;
  for (const fault of unrecognized) onFault?.(fault);
  return error;
}

/**
 * Whether a body is an Error object even in a 2xx answer: other answers may have a `message` or a
 * `type` too, but no `code` and no error type.
 */
export function isUnmistakable({ code, message, type, errorId }: UpstreamError): boolean {
  const more = message !== undefined || errorId !== undefined;
  return code ? more || type !== UNSPECIFIED : more && type !== UNSPECIFIED;
}

/**
 * Whether an Error object is one even among fields of a result: it has an error type, or a code that
 * the spec lists and that does not itself say that the call may have gone well.
 */
export function isOfSpec({ code, type }: UpstreamError): boolean {
  const reading = readingOf(code ?? "");
  return type !== UNSPECIFIED || (reading !== undefined && reading.retry !== "lookUp");
}

/** The properties of an Error object; other answers may have some of them too. */
export const sharedWithErrors: ReadonlySet<string> = new Set(
  wireFields(UpstreamErrorSchema).map(({ field }) => field.localName),
);

/** The Error object of Too Many Requests, with the spec's defaults for missing properties. */
export function rateLimitError(given: UpstreamError | undefined): UpstreamError {
  const error = given ?? create(UpstreamErrorSchema);
  return {
    ...error,
    code: error.code || "too_many_requests",
    message: error.message || "Too many requests",
    type: error.type === UNSPECIFIED ? ErrorType.API_ERROR : error.type,
  };
}

/**
 * Returns an Error object that is fit for callers and logs: its texts hold no card numbers and no
 * secrets of the request.
 */
export function cleanError(
  error: UpstreamError,
  httpStatus: number,
  hideSecrets: (text: string) => string,
): UpstreamError {
  const clean: UpstreamError = { ...error, httpStatus };
  for (const name of ["code", "message", "param", "paymentId", "errorId"] as const) {
    const text = error[name];
    if (text === undefined) continue;
    // Digits of a UUID may look like a card number, and an id must stay intact.
    clean[name] = hideSecrets(uuid.test(text) ? text : maskCardNumbers(text));
  }
  return clean;
}

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

const { UNSPECIFIED } = ErrorType;
