import { GatewayError } from "../../src/errors.ts";

export function hasCode(code: string) {
  return (error: unknown): boolean => error instanceof GatewayError && error.code === code;
}

function hasReason(reason: string, code: string) {
  return (error: unknown): boolean =>
    hasCode(code)(error) && (error as GatewayError).details.reason === reason;
}

export const isExpired = hasReason("CURSOR_EXPIRED", "OUT_OF_RANGE");
export const isFull = hasReason("DEAD_LETTERS_FULL", "UNAVAILABLE");

/** The store is out of reach, and the caller is told when to try again. */
export function isAway(error: unknown): boolean {
  const isUnavailable = hasReason("STORE_UNAVAILABLE", "UNAVAILABLE");
  return isUnavailable(error) && ((error as GatewayError).details.retryAfterMs ?? 0) > 0;
}
