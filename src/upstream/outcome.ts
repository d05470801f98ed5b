import { type ErrorCode, GatewayError, type GatewayErrorDetails } from "../errors.ts";
import type { Kind } from "../model/kinds.ts";

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

/**
 * When to retry a call that the service failed, in milliseconds: it says nothing itself. After a
 * second the breaker may be open, whose refusals say when it lets calls through.
 */
export const unavailableRetryMs = 1_000;

/** The error if the service cannot be reached or understood, and no money moved. */
export function unavailable(
  message: string,
  cause: unknown,
  retryAfterMs = unavailableRetryMs,
): GatewayError {
  const details = { reason: "UPSTREAM_UNAVAILABLE", retryAfterMs, cause };
  return new GatewayError("UNAVAILABLE", message, details);
}
