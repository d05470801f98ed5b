import { GatewayError } from "../errors.ts";

/** `reason` of the error for a call that is refused because of overload. */
export const overloadedReason = "OVERLOADED";

const retryAfterMs = 1_000;

/** The error for a call that is refused because of overload, before anything was done. */
export function overloaded(): GatewayError {
  return new GatewayError("RESOURCE_EXHAUSTED", "the gateway is overloaded: try again later", {
    reason: overloadedReason,
    retryAfterMs,
  });
}
