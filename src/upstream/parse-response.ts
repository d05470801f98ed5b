import { create } from "@bufbuild/protobuf";
import { GatewayError } from "../errors.ts";
import { ErrorType, type UpstreamError, UpstreamErrorSchema } from "../gen/payments/v1/error_pb.ts";
import type { DecodeOptions, WireFault } from "../wire/wire.ts";
import type { AnswerReader } from "./calls.ts";
import { isRateLimit, readError, saysDone } from "./error-codes.ts";
import {
  cleanError,
  isMeantAsError,
  rateLimitError,
  readErrorObject,
  sharedWithErrors,
} from "./error-object.ts";
import type { HttpResponse } from "./exchange.ts";
import { pauseMs, retryAfterMs } from "./headers.ts";
import {
  type Failure,
  type Money,
  outcomeUnknown,
  unavailable,
  unavailableRetryMs,
} from "./outcome.ts";

/** What reading an answer depends on, beside its call. */
export interface Circumstances extends DecodeOptions {
  /** Absent for a call that moves no money. */
  readonly money?: Money | undefined;
  /** The request carried a customer's own credentials. */
  readonly asCustomer: boolean;
  /** Redacts the secrets of the request and its headers in a text. */
  readonly hideSecrets: (text: string) => string;
  readonly onFault: (fault: WireFault) => void;
}

/** What an answer means. */
export type ParsedResponse<Result> = { readonly kind: "result"; readonly result: Result } | Failure;

/**
 * Reads an answer. The spec ties no HTTP statuses to errors, so an Error object counts as an error
 * in a 2xx answer too. Never throws.
 */
export function parseResponse<Result>(
  answer: HttpResponse,
  call: AnswerReader<Result>,
  given: Circumstances,
): ParsedResponse<Result> {
  const { status, text } = answer;
  if (status >= 200 && status < 300) return parseSuccess(answer, call, given);
  const object = readErrorObject(text, given);
  if (!object && status < 400) return notUnderstood(answer, given); // A redirect: not followed.
  if (!object && status < 500 && status !== 429 && call.isResult) {
    try {
      const result = call.read(text, given);
      if (call.isResult(result)) return unlessMixedUp(result, answer, call, given);
    } catch {
      // No JSON either.
    }
  }
  return refusal(answer, object, given);
}

/** An answer that names another external_id does not answer this call. */
function unlessMixedUp<Result>(
  result: Result,
  answer: HttpResponse,
  { externalId }: AnswerReader<Result>,
  given: Circumstances,
): ParsedResponse<Result> {
  const named =
    externalId !== undefined && (result as { externalId?: string } | undefined)?.externalId;
  if (!named || named === externalId) return { kind: "result", result };
  const cause = new Error("the answer is about another external_id");
  // `mixUp` is reported of it, and no fault.
  return { ...notUnderstood(answer, given, cause), mixedUp: true, fault: undefined };
}

function parseSuccess<Result>(
  answer: HttpResponse,
  call: AnswerReader<Result>,
  given: Circumstances,
): ParsedResponse<Result> {
  // What an Error object has of its own is no fault: report only once it is known to be none.
  const faults: WireFault[] = [];
  let result: Result;
  try {
    result = call.read(answer.text, { ...given, onFault: (fault) => void faults.push(fault) });
  } catch (cause) {
    return notUnderstood(answer, given, cause);
  }
  const blank = isBlank(result) && !faults.some(isOfField);
  // The data of a payment says more than an Error object's words around it.
  const mayBeError = !call.isResult?.(result) && membersOfError.test(answer.text);
  const object = mayBeError ? readErrorObject(answer.text, given) : undefined;
  const meantAsError = object !== undefined && isMeantAsError(object, !blank);
  if (!meantAsError) for (const fault of faults) given.onFault(fault);
  const read = unlessMixedUp(result, answer, call, given);
  if (read.kind === "error") return read;
  if (meantAsError) {
    const isDone = !given.money && saysDone(object);
    return isDone ? read : refusal(answer, object, given);
  }
  // JSON that says nothing about the payment leaves open whether it was made.
  return blank && given.money ? notUnderstood(answer, given) : read;
}

/** One of these is in each unmistakable Error object: no other answer is read a second time. */
const membersOfError = /"(?:code|message|error_id)"/;

/** Whether a fault tells of a field that the service sent. */
function isOfField({ kind }: WireFault): boolean {
  return kind === "unset" || kind === "unrecognized";
}

/** Whether a result holds only what an Error object could hold too. */
function isBlank(result: unknown): boolean {
  if (Array.isArray(result)) return result.every(isBlank);
  const fields = (result ?? {}) as Readonly<Record<string, unknown>>;
  for (const name in fields) {
    if (name === "$typeName" || sharedWithErrors.has(name)) continue;
    const value = fields[name];
    if (value === undefined || value === 0 || value === false || value === "") continue;
    if (Array.isArray(value) && value.length === 0) continue;
    const isObject = typeof value === "object" && value !== null;
    if (isObject && "case" in value && value.case === undefined) continue;
    return false;
  }
  return true;
}

/** Turns an Error object, or a bare HTTP status, into the error that callers receive. */
function refusal(
  answer: HttpResponse,
  object: UpstreamError | undefined,
  { money, asCustomer, hideSecrets, onFault }: Circumstances,
): Failure {
  const { status } = answer;
  const rateLimited = isRateLimit(status, object?.code);
  const given = object ?? create(UpstreamErrorSchema);
  for (const { field: path, value } of given.unrecognized) {
    onFault({ path, kind: "unrecognized", value });
  }
  const told = { ...(rateLimited ? rateLimitError(given) : given), httpStatus: status };
  const upstream = cleanError(told, hideSecrets);
  const reading = readError({ ...told, asCustomer, movesMoney: money !== undefined });
  const failed = status >= 500;
  const how = {
    kind: "error",
    // An error code is the service's own word on one call, whatever the status: the service is up.
    verdict: failed && !upstream.code ? "failed" : "answered",
    fault: failed ? `HTTP ${status}` : undefined,
    rateLimited,
  } as const;
  // A 5xx without an Error object most likely comes from a proxy, not from the service.
  const said = object || !failed ? { upstream } : {};
  if (money && (reading.leavesOpen || !isRejection(upstream))) {
    return { ...how, error: outcomeUnknown(money.externalId, said) };
  }
  const error = new GatewayError(reading.code, textOf(upstream), {
    ...ownReason(upstream),
    ...said,
    ...(reading.notAttempted && { notAttempted: true }),
    ...(reading.retry === "after" && { retryAfterMs: retryAfterMs(answer, rateLimited) }),
    ...(reading.retry === "yes" && { retryAfterMs: pauseMs(answer) ?? unavailableRetryMs }),
  });
  // With a customer's credentials the service may have refused those, and a customer must not be
  // able to make the gateway unready.
  return { ...how, error, credentialsRefused: !!reading.credentials && !asCustomer };
}

/**
 * Whether an error answer proves that the call was not carried out: the service says so in an Error
 * object, or the status (401, 429) is decided before the call is looked at. Any other bare status
 * may come from a proxy, after the service has seen the call.
 */
function isRejection({ httpStatus, code, type }: UpstreamError): boolean {
  return httpStatus === 401 || httpStatus === 429 || !!code || type !== ErrorType.UNSPECIFIED;
}

function textOf({ code, message, httpStatus }: UpstreamError): string {
  const text = [code, message].filter(Boolean).join(": ");
  return text || `the payments service answered with HTTP status ${httpStatus}`;
}

/** The gateway's reason; none for an error whose code says why. */
function ownReason({ code, httpStatus }: UpstreamError): { reason?: string } {
  if (code === "too_many_requests") return { reason: "RATE_LIMITED" };
  if (code) return {};
  return { reason: httpStatus >= 500 ? "UPSTREAM_UNAVAILABLE" : `UPSTREAM_HTTP_${httpStatus}` };
}

function notUnderstood(
  { status }: HttpResponse,
  { money }: Circumstances,
  cause?: unknown,
): Failure {
  const error = money
    ? outcomeUnknown(money.externalId, { cause })
    : unavailable(
        `the payments service's answer (HTTP status ${status}) was not understood`,
        cause,
      );
  const fault = `HTTP ${status}${status < 500 ? ", and the answer was not understood" : ""}`;
  return { kind: "error", error, verdict: "failed", fault };
}
