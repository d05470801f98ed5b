import { GatewayError } from "../errors.ts";
import type { Admission, CallKind, Slot } from "./admission.ts";

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

/**
 * Resolves in a turn among the calls. It settles also if the client leaves.
 * @throws GatewayError RESOURCE_EXHAUSTED if it is refused, of which `onRefused` hears
 */
export function turnOf(
  admission: Admission,
  kind: CallKind,
  owner: object,
  onRefused?: () => void,
): Promise<Slot> {
  return new Promise((resolve, reject) => {
    admission.enter({
      ...{ kind, owner, isGone: () => false, start: resolve },
      refuse() {
        onRefused?.();
        reject(overloaded());
      },
    });
  });
}
