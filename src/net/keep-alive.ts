import type { Http2Session } from "node:http2";
import type { Socket } from "node:net";
import { maxTimerMs } from "./timeout-header.ts";

export interface KeepAlive {
  /** How often a peer of HTTP/2 is asked whether it is still there, in milliseconds; 0: never. */
  readonly keepAliveIntervalMs: number;
  /** How long it may take to say so. */
  readonly keepAliveTimeoutMs: number;
}

/**
 * Ends a session whose peer is gone without a word, by PING: TCP alone would notice only when something
 * is sent to it, and then after minutes.
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
    // What waits to be sent to it would keep a session that only closes.
    timer = setTimeout(() => socket.destroy(), Math.min(keepAliveTimeoutMs, maxTimerMs));
    const answered = () => {
      clearTimeout(timer);
      if (!session.destroyed) rest();
    };
    // Refused when too many PINGs are open: then it is asked again later.
    if (!session.ping(answered)) answered();
  }

  rest();
  session.on("close", () => clearTimeout(timer));
}
