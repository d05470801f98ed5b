import { GatewayError } from "../errors.ts";

/** No token can be had within the longest wait or before the caller's deadline. */
export function exhaustedError(retryAfterMs: number): GatewayError {
  return new GatewayError("RESOURCE_EXHAUSTED", "the request budget is used up, retry later", {
    reason: "RATE_LIMITED",
    retryAfterMs: Math.max(1, Math.ceil(retryAfterMs)),
  });
}

export function deadlineError(): GatewayError {
  return new GatewayError("DEADLINE_EXCEEDED", "the deadline passed before the call was sent");
}

export function closedError(): GatewayError {
  return new GatewayError("UNAVAILABLE", "the gateway is shutting down");
}
