import type { Http2Session } from "node:http2";
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

/**
 * Checks a session by PING, and cuts it if its peer has vanished without closing it. TCP alone
 * would notice only when data is sent to the peer, and then only after minutes.
 *
 * A session that either side has closed (GOAWAY) while streams are open is checked in any case, by
 * SETTINGS: Node sends no more PINGs on it. nghttp2 reads no more of it once its peer breaks the
 * protocol, and Node then hears neither of that nor of the peer's end.
 */
export function keepAlive(session: Http2Session, socket: Socket, limits: ConnectionLimits): void {
  const { keepAliveIntervalMs, keepAliveTimeoutMs, idleTimeoutMs } = limits;
  const intervalMs = keepAliveIntervalMs || idleTimeoutMs;

  function ask(): void {
    if (session.destroyed) return;
    // Closing only the session would wait for unsent data, which the peer no longer takes.
    cancel = startTimer(keepAliveTimeoutMs, () => socket.destroy());
    const answered = () => {
      cancel();
      if (!session.destroyed) cancel = startTimer(intervalMs, ask);
    };
    if (session.closed) session.settings({}, answered);
    // `ping` returns false while too many PINGs are unanswered: try again after the next interval.
    else if (keepAliveIntervalMs === 0 || !session.ping(answered)) answered();
  }

  let cancel = startTimer(intervalMs, ask);
  session.on("close", () => cancel());
}
