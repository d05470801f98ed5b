import { ErrorType, type UpstreamError, UpstreamErrorSchema } from "../gen/payments/v1/error_pb.ts";
import { maskCardNumbers } from "../secrets/mask-card-numbers.ts";
import { wireFields } from "../wire/plan.ts";
import { type DecodeOptions, decode } from "../wire/wire.ts";
import { readingOf } from "./error-codes.ts";

/**
 * Reads a body as an Error object; undefined if it has no code, message, type or error id, or only
 * empty ones.
 */
export function readErrorObject(
  text: string,
  { hideSecrets }: Pick<DecodeOptions, "hideSecrets">,
): UpstreamError | undefined {
  try {
    const error = decode(UpstreamErrorSchema, text, { hideSecrets });
    const { code, message, type, errorId } = error;
    return code || message || errorId || type !== UNSPECIFIED ? error : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Whether a 2xx answer is meant as an error. Other answers may have a `message` or a `type` too, but
 * not two of words, code and error type. Among fields of a result it must also have an error type, or
 * a code that the spec lists and that does not itself say that the call may have gone well.
 */
export function isMeantAsError(
  { code, message, type, errorId }: UpstreamError,
  amongFields: boolean,
): boolean {
  const hasType = type !== UNSPECIFIED;
  const hasWords = message !== undefined || errorId !== undefined;
  if ([code, hasType, hasWords].filter(Boolean).length < 2) return false;
  const reading = readingOf(code ?? "");
  return !amongFields || hasType || (reading !== undefined && reading.retry !== "lookUp");
}

/** The properties of an Error object; other answers may have some of them too. */
export const sharedWithErrors: ReadonlySet<string> = new Set(
  wireFields(UpstreamErrorSchema).map(({ field }) => field.localName),
);

/** The Error object of Too Many Requests, with the spec's defaults for missing properties. */
export function rateLimitError(error: UpstreamError): UpstreamError {
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
  hideSecrets: (text: string) => string,
): UpstreamError {
  const clean: UpstreamError = { ...error };
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
