import type { Socket } from "node:net";
import { GatewayError } from "../errors.ts";
import type { ConnectionLimits } from "./connection-limits.ts";
import { startTimer } from "./timer.ts";

/**
 * Limits a connection's age, so that callers spread their calls over servers that were added after
 * it was opened. Jitter keeps connections that were opened together from ending together. It is cut
 * when all streams and calls have had their time to end. The `ending` of its streams aborts with
 * UNAVAILABLE when they must end, so that clients resume them on another connection; it is undefined
 * if connections last for ever.
 * @param onOld called when it must accept no new calls; calls in flight go on
 */
export function ageConnection(
  limits: ConnectionLimits,
  socket: Socket,
  onOld: () => void = () => {},
) {
  const { maxConnectionAgeMs, connectionAgeGraceMs, maxUnaryTimeoutMs } = limits;
  if (maxConnectionAgeMs === 0) return { isOld: false, ending: undefined };
  const ending = new AbortController();
  let isOld = false;

  let cancel = startTimer(maxConnectionAgeMs * (0.9 + Math.random() * 0.2), () => {
    isOld = true;
    cancel = startTimer(connectionAgeGraceMs, () => {
      cancel = startTimer(maxUnaryTimeoutMs, () => socket.destroy());
      ending.abort(tooOld());
    });
    onOld();
  });
  socket.on("close", () => cancel());
  return {
    get isOld() {
      return isOld;
    },
    ending: ending.signal,
  };
}

function tooOld(): GatewayError {
  return new GatewayError(
    "UNAVAILABLE",
    "the connection has reached its maximum age: resume from the last cursor",
    { reason: "CONNECTION_AGE", retryAfterMs: 0 },
  );
}
