import type { Http2Session } from "node:http2";
import type { Socket } from "node:net";
import { maxTimerMs } from "./timer.ts";

export interface KeepAlive {
  /** How often an HTTP/2 connection is checked by PING, in milliseconds; 0: never. */
  readonly keepAliveIntervalMs: number;
  /** How long the peer may take to acknowledge a PING, in milliseconds. */
  readonly keepAliveTimeoutMs: number;
}

/**
 * Checks a session by PING, and cuts it if its peer has vanished without closing it. TCP alone
 * would notice only when data is sent to the peer, and then only after minutes.
 */
export function keepAlive(session: Http2Session, socket: Socket, times: KeepAlive): void {
  const { keepAliveIntervalMs, keepAliveTimeoutMs } = times;
  if (keepAliveIntervalMs === 0) return;
  let timer: NodeJS.Timeout;

  function rest(): void {
    timer = setTimeout(ask, Math.min(keepAliveIntervalMs, maxTimerMs));
  }

  function ask(): void {
    if (session.destroyed) return;
    // Closing only the session would wait for unsent data, which the peer no longer takes.
    timer = setTimeout(() => socket.destroy(), Math.min(keepAliveTimeoutMs, maxTimerMs));
    const answered = () => {
      clearTimeout(timer);
      if (!session.destroyed) rest();
    };
    // `ping` returns false while too many PINGs are unanswered: try again after the next interval.
    if (!session.ping(answered)) answered();
  }

  rest();
  session.on("close", () => clearTimeout(timer));
}
