import { GatewayError, type GatewayErrorDetails } from "../errors.ts";
import type { Kind } from "../model/kinds.ts";

/** What a call moves money for. */
export interface Money {
  readonly kind: Kind;
  readonly externalId: string;
}

/** A call that moves money was sent, and nothing tells whether it moved. */
export function outcomeUnknown(
  externalId: string,
  details: Pick<GatewayErrorDetails, "upstream" | "cause"> = {},
): GatewayError {
  return new GatewayError(
    "UNKNOWN",
    "the call was sent and its outcome is not known: look it up before you try again",
    { reason: "OUTCOME_UNKNOWN", outcomeUnknown: { externalId }, ...details },
  );
}

/** The service is out of reach or makes no sense; nothing was done, or nothing that matters. */
export function unavailable(message: string, cause: unknown): GatewayError {
  return new GatewayError("UNAVAILABLE", message, { reason: "UPSTREAM_UNAVAILABLE", cause });
}
