/**
 * What one call shows about the service's health:
 * - `answered`: the service works, whatever it answered (an error, Too Many Requests);
 * - `failed`: unreachable, the connection lost, 5xx without an error code of the service, or an
 *   answer that was not understood;
 * - `timeout`: no answer in time;
 * - `nothing`: the gateway or the caller ended the call.
 */
export type Verdict = "answered" | "failed" | "timeout" | "nothing";

/** Opens after so many failures without an answer in between. */
const maxFailures = 5;

/**
 * Circuit breaker: keeps calls from waiting for a service that fails. Closed, it lets all calls
 * through. Open, it lets through one at a time, whose answer closes it, and refuses all others.
 */
export function createBreaker(onState: (state: "closed" | "open") => void) {
  let failures = 0;
  let probing = false;
  const isOpen = () => failures >= maxFailures;
  const refuses = () => isOpen() && probing;
  return {
    refuses,
    /**
     * Lets one call through, which must be sent now; undefined while it refuses calls.
     * @returns what takes the verdict on the call, once: a call without one bars all later calls
     */
    enter(): ((verdict: Verdict) => void) | undefined {
      if (refuses()) return undefined;
      const isProbe = isOpen();
      probing = isProbe;
      return (verdict) => {
        if (isProbe) probing = false;
        const wasOpen = isOpen();
        if (verdict === "answered") failures = 0;
        else if (verdict !== "nothing") failures++;
        if (isOpen() !== wasOpen) onState(wasOpen ? "closed" : "open");
      };
    },
  };
}
