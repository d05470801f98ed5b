import type { UpstreamError } from "./gen/payments/v1/error_pb.ts";

/** The closed list of error codes, with the names of the gRPC status codes. */
export type ErrorCode =
  | "CANCELLED"
  | "UNKNOWN"
  | "INVALID_ARGUMENT"
  | "DEADLINE_EXCEEDED"
  | "NOT_FOUND"
  | "ALREADY_EXISTS"
  | "PERMISSION_DENIED"
  | "RESOURCE_EXHAUSTED"
  | "FAILED_PRECONDITION"
  | "ABORTED"
  | "OUT_OF_RANGE"
  | "UNIMPLEMENTED"
  | "INTERNAL"
  | "UNAVAILABLE"
  | "UNAUTHENTICATED";

/** One input field that was refused: `path` as in the proto (`payment_method.cc.number`). */
export interface FieldViolation {
  readonly path: string;
  readonly message: string;
}

export interface GatewayErrorDetails {
  /** Stable machine-readable reason of the gateway's own, in UPPER_SNAKE_CASE. */
  readonly reason?: string;
  /** The upstream's own Error object, where there was one. */
  readonly upstream?: UpstreamError;
  /** The refused fields of an `INVALID_ARGUMENT`. */
  readonly fields?: readonly FieldViolation[];
  /** When a retry may succeed, in milliseconds from now. */
  readonly retryAfterMs?: number;
  /** Set when a call that moves money was sent and its outcome is not known. */
  readonly outcomeUnknown?: { readonly externalId: string };
  /** The service attempted nothing: too many requests, or it refused the merchant's credentials. */
  readonly notAttempted?: true;
  /** The cursor from which a stream that ended early can be resumed. */
  readonly resumeCursor?: string;
  /** For the log alone: what the store or its driver said, which quotes no value. */
  readonly storeSaid?: string;
  readonly cause?: unknown;
}

/**
 * The one error class that the gateway's parts throw to each other. Its message may be shown to
 * callers: it never holds a secret. Each edge maps it to its protocol in its own `errors.ts`, and
 * masks any other error.
 */
export class GatewayError extends Error {
  override readonly name = "GatewayError";
  readonly code: ErrorCode;
  readonly details: Omit<GatewayErrorDetails, "cause">;

  constructor(code: ErrorCode, message: string, { cause, ...details }: GatewayErrorDetails = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.details = details;
  }
}

/** The store did not answer in time: Redis, or a disk. It may have done all the same what was asked. */
export class StoreTimeout extends Error {
  override readonly name = "StoreTimeout";
  constructor(ms: number) {
    super(`the store did not answer within ${ms} ms`);
  }
}

/** The store did not answer, or answered an error. It may have done all the same what was asked. */
export class StoreUnavailable extends GatewayError {
  /**
   * Whether the store is away, for other processes too: it refuses connections or closes them at
   * once, cannot be reached, or its cluster reports that it is down. Otherwise it is silent or
   * answers an error (read-only, loading, out of memory, too few replicas): it may hold what it did
   * not return.
   */
  readonly away: boolean;
  /** The connection broke or was missing: the next one shows whether the store is away. */
  readonly broken: boolean;

  /** @param cause its message is logged: it quotes no value */
  constructor(cause: unknown, { away = false, broken = false } = {}) {
    super("UNAVAILABLE", "the store is out of reach", {
      ...{ reason: "STORE_UNAVAILABLE", retryAfterMs: 1_000, cause },
      ...(cause instanceof Error && { storeSaid: cause.message }),
    });
    this.away = away;
    this.broken = broken;
  }
}

/** The error for credentials that are missing, not valid, or not valid any more. */
export function unauthenticated(message: string, why: { readonly reason: string }): GatewayError {
  return new GatewayError("UNAUTHENTICATED", message, why);
}

/**
 * The error for calls and streams that the gateway's shutdown refuses or ends: another gateway
 * answers the next one.
 * @param advice follows the message
 */
export function shuttingDown(advice = ""): GatewayError {
  return new GatewayError("UNAVAILABLE", `the gateway is shutting down${advice}`, {
    reason: "SHUTTING_DOWN",
    retryAfterMs: 1_000,
  });
}

/** What a map holds for a merchant account. @throws Error for a name that is not configured */
export function ofAccount<T>(all: ReadonlyMap<string, T>, name: string): T {
  const found = all.get(name);
  if (found === undefined) throw new Error(`no such merchant account: ${name}`);
  return found;
}

/** A machine-readable reason and who defines it, as in `google.rpc.ErrorInfo`. */
export interface Reason {
  readonly domain: string;
  readonly reason: string;
}

/** A reason of the gateway's own. */
export function gatewayReason(reason: string): Reason {
  return { domain: "payments-gateway", reason };
}

/**
 * The reason of an error: the gateway's own, else the upstream's code, in a domain of its own.
 * Undefined for an error that has neither.
 */
export function reasonOf({ details: { reason, upstream } }: GatewayError): Reason | undefined {
  if (reason !== undefined) return gatewayReason(reason);
  if (!upstream?.code) return undefined;
  return { domain: "payments-service", reason: asReason(upstream.code) };
}

/**
 * A code in the form that ErrorInfo has for a reason: at most 63 of `A-Z`, `0-9` and `_`, and the
 * first one a letter. `3ds_required` is CODE_3DS_REQUIRED.
 */
function asReason(code: string): string {
  const words = code.toUpperCase().match(/[A-Z0-9]+/g) ?? ["UNREADABLE"];
  const name = words.join("_");
  return (/^[A-Z].{2}/.test(name) ? name : `CODE_${name}`).slice(0, 63).replace(/_$/, "");
}

/** An INVALID_ARGUMENT that names the given fields. */
export function invalidFields(fields: readonly FieldViolation[]): GatewayError {
  return new GatewayError("INVALID_ARGUMENT", textOfFields(fields), {
    reason: "INVALID_FIELDS",
    fields,
  });
}

/** The refused fields of a request in one text. */
export function textOfFields(fields: readonly FieldViolation[]): string {
  return fields.map(({ path, message }) => (path ? `${path}: ${message}` : message)).join("; ");
}

/** The reason with which a call's signal aborts at its deadline. */
export function deadlinePassed(): DOMException {
  return new DOMException("the deadline passed", "TimeoutError");
}

/**
 * The error that a caller gets for an aborted signal: the reason if it is a GatewayError, else
 * `DEADLINE_EXCEEDED` for a time-out and `CANCELLED` for anything else.
 */
export function errorOfAbort(signal: AbortSignal): GatewayError {
  const reason: unknown = signal.reason;
  if (reason instanceof GatewayError) return reason;
  if (reason instanceof Error && reason.name === "TimeoutError") {
    return new GatewayError("DEADLINE_EXCEEDED", "the deadline passed", { cause: reason });
  }
  return new GatewayError("CANCELLED", "the call was cancelled", { cause: reason });
}

/**
 * Waits for a promise until the signal aborts. A signal that has aborted before has no effect.
 * @param errorOf what to throw on abort. Default: the signal's reason
 */
export function unlessAborted<Result>(
  awaited: Promise<Result>,
  signal: AbortSignal,
  errorOf: () => unknown = () => signal.reason,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(errorOf());
    signal.addEventListener("abort", onAbort, { once: true });
    const done = () => signal.removeEventListener("abort", onAbort);
    awaited.then(resolve, reject).finally(done);
  });
}

/**
 * Variables are wrong or missing, or what they name cannot be used: their names, what they got (never
 * a secret), what is accepted.
 */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  /** Begin with the variable's name each; `message` has a line for each. */
  readonly mistakes: readonly string[];

  constructor(variable: string, message: string);
  constructor(mistakes: readonly string[]);
  constructor(given: string | readonly string[], message = "") {
    const mistakes = typeof given === "string" ? [`${given}: ${message}`] : given;
    super(mistakes.join("\n"));
    this.mistakes = mistakes;
  }
}
