import { GatewayError } from "../errors.ts";

/** `reason` of the error that a call gets which the process can't take on. */
export const overloadedReason = "OVERLOADED";

const retryAfterMs = 1_000;

/** The error for a call refused because of overload: nothing was done. */
export function overloaded(): GatewayError {
  return new GatewayError("RESOURCE_EXHAUSTED", "the gateway is overloaded: try again later", {
    reason: overloadedReason,
    retryAfterMs,
  });
}
