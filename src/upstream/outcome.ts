import { type ErrorCode, GatewayError, type GatewayErrorDetails } from "../errors.ts";
import type { Kind } from "../model/kinds.ts";
import { codeInWords, systemCode } from "../net/system-errors.ts";
import type { Verdict } from "./breaker.ts";
import type { ExchangeFailure, FailureKind } from "./exchange.ts";

/** The payment or payout that a call moves money for. */
export interface Money {
  readonly kind: Kind;
  readonly externalId: string;
}

/** The error of a call that moves money, was sent, and whose outcome is unknown. */
export function outcomeUnknown(
  externalId: string,
  details: Pick<GatewayErrorDetails, "upstream" | "cause"> = {},
  message = "the call was sent and its outcome is not known: look it up before you try again",
  code: ErrorCode = "UNKNOWN",
): GatewayError {
  const told = { reason: "OUTCOME_UNKNOWN", outcomeUnknown: { externalId } };
  return new GatewayError(code, message, { ...told, ...details });
}

/** When to retry a call that the service failed, in milliseconds: it says nothing itself. */
export const unavailableRetryMs = 1_000;

/** The error if the service cannot be reached or understood, and no money moved. */
export function unavailable(message: string, cause?: unknown): GatewayError {
  const details = { reason: "UPSTREAM_UNAVAILABLE", retryAfterMs: unavailableRetryMs, cause };
  return new GatewayError("UNAVAILABLE", message, details);
}

/** How an attempt to make a call ended without a result. */
export interface Failure {
  readonly kind: "error";
  readonly error: GatewayError;
  /** Also `nothing` if breaker or bucket refused the call, so that nothing was sent. */
  readonly verdict: Verdict;
  /** Why there is no answer that is understood, if so, in words that quote nothing of it. */
  readonly fault?: string | undefined;
  /** It was the spec's Too Many Requests. */
  readonly rateLimited?: boolean;
  /** The merchant's own credentials were refused. */
  readonly credentialsRefused?: boolean;
  /** The answer is to another request: nothing in it is about this one. */
  readonly mixedUp?: boolean;
}

/** The failure of a call whose exchange failed `lastedMs` after its start. */
export function failureOf(
  failed: ExchangeFailure,
  lastedMs: number,
  money: Money | undefined,
): Failure {
  const verdict = verdictOf(failed, lastedMs);
  return {
    kind: "error",
    error: errorOf(failed, money),
    verdict,
    fault: verdict === "nothing" ? undefined : faultOf(failed),
    rateLimited: failed.head?.status === 429,
  };
}

export function verdictOf({ failure, cause }: ExchangeFailure, lastedMs: number): Verdict {
  // A caller with a short deadline must not open the breaker for others.
  if (failure === "caller" && lastedMs >= slowMs) return "timeout";
  const { code } = (cause ?? {}) as NodeJS.ErrnoException;
  if (failure === "connection" && timeouts.has(code)) return "timeout";
  return endings[failure].verdict;
}

const timeouts: ReadonlySet<unknown> = new Set(["UND_ERR_CONNECT_TIMEOUT", "ETIMEDOUT"]);

/** A caller that leaves after this long counts as an upstream time-out. */
const slowMs = 5_000;

function errorOf({ failure, sent, cause }: ExchangeFailure, money?: Money): GatewayError {
  // Whatever ended the exchange, a money call that was sent has an unknown outcome.
  if (sent && money) return outcomeUnknown(money.externalId, { cause });
  if (failure === "caller") return cause as GatewayError;
  if (failure === "kept") {
    return cause instanceof GatewayError ? cause : unavailable("the call was not sent", cause);
  }
  if (!sent) return unavailable("the payments service cannot be reached", cause);
  return unavailable(`the call to the payments service failed: ${endings[failure].fault}`, cause);
}

function faultOf({ failure, cause }: ExchangeFailure): string {
  if (failure !== "connection" || !(cause instanceof Error)) return endings[failure].fault;
  const code = systemCode(cause);
  if (isRefusedAnswer(cause, code)) return "the answer breaks the rules of HTTP/1.1";
  return code === undefined ? endings[failure].fault : codeInWords(code);
}

/** Whether undici itself closed the connection, on a 100 Continue that nobody asked for, say. */
function isRefusedAnswer({ name, message }: Error, code: string | undefined): boolean {
  if (name === "HTTPParserError" || code === "UND_ERR_RES_CONTENT_LENGTH_MISMATCH") return true;
  return message === "bad response" || message === "bad upgrade";
}

const endings = {
  caller: { verdict: "nothing", fault: "no answer before the caller's deadline" },
  connection: { verdict: "failed", fault: "the connection was lost" },
  kept: { verdict: "nothing", fault: "the request was not let out" },
  timeout: { verdict: "timeout", fault: "no answer in time" },
  tooLarge: { verdict: "answered", fault: "the answer was too long" },
} as const satisfies Readonly<Record<FailureKind, { verdict: Verdict; fault: string }>>;
