import { constants, type ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import { createAllowance } from "./allowance.ts";
import type { ConnectionLimits } from "./connection-limits.ts";
import type { Cut, OnCut } from "./cut.ts";
import { allowStreams, type StreamAllowance } from "./stream-allowance.ts";

/**
 * Cuts HTTP/2 sessions for what nghttp2 and Node allow. These cut by themselves: more than 8
 * CONTINUATIONs, resets beyond a rate, streams beyond the limit, empty DATA, PRIORITY and unknown
 * frames by the thousand, and acknowledgements that the client does not read. They answer any
 * number of PINGs and SETTINGS if the client reads the answers, they have no time-out for a client
 * that only connects, or that sends headers without end, and they wait for ever until a client closes
 * a connection that they closed. PINGs do not keep a session open.
 */
export function createSessionGuard(limits: ConnectionLimits, onCut: OnCut) {
  interface Guarded {
    readonly socket: Socket;
    readonly allowance: StreamAllowance;
    readonly cut: (reason: Cut) => void;
    idle: NodeJS.Timeout;
    overSinceMs?: number;
  }
  const guarded = new Map<ServerHttp2Session, Guarded>();

  const sweep = setInterval(
    () => {
      const now = performance.now();
      for (const [session, state] of guarded) {
        state.allowance.review();
        if (!session.destroyed && !(session.closed && state.allowance.open === 0)) continue;
        state.overSinceMs ??= now;
        if (now - state.overSinceMs < limits.lingerMs) continue;
        onCut("lingering");
        state.socket.destroy();
      }
    },
    Math.min(limits.lingerMs, 1_000),
  ).unref();

  return {
    add(session: ServerHttp2Session, socket: Socket): void {
      const allowance = allowStreams(session, limits);
      const cut = (reason: Cut) => {
        if (session.destroyed) return;
        why = reason;
        session.destroy(new Error(reason), constants.NGHTTP2_ENHANCE_YOUR_CALM);
      };
      const closeWhenIdle = () => setTimeout(() => session.close(), limits.idleTimeoutMs);
      const state: Guarded = { socket, allowance, cut, idle: closeWhenIdle() };
      guarded.set(session, state);
      socket.on("close", () => guarded.delete(session));
      session.on("stream", (stream) => {
        clearTimeout(state.idle);
        stream.on("close", () => {
          if (allowance.open === 0 && !session.closed) state.idle = closeWhenIdle();
          if (stream.rstCode !== constants.NGHTTP2_NO_ERROR && !mayReset()) cut("reset_flood");
        });
      });
      session.on("close", () => clearTimeout(state.idle));
      let why: Cut = "protocol";
      // `error` is also emitted when the client breaks the connection, which is no cut.
      session.on("error", ({ code = "" }: NodeJS.ErrnoException) => {
        if (why !== "protocol" || code.startsWith("ERR_HTTP2_")) onCut(why);
      });
      const { resets } = limits;
      const mayReset = createAllowance({
        // All streams that a client may have can time out together.
        get burst() {
          return Math.min(resets.burst, 2 * allowance.allowed);
        },
        perSecond: resets.perSecond,
      });
      const mayPing = createAllowance(limits.pings);
      session.on("ping", () => mayPing() || cut("ping_flood"));
      const maySet = createAllowance(limits.settings);
      session.on("remoteSettings", () => maySet() || cut("settings_flood"));
    },
    /** Cuts a session for another reason. */
    cut(session: ServerHttp2Session, reason: Cut): void {
      guarded.get(session)?.cut(reason);
    },
    /** Closes the sessions without an open stream. */
    closeIdle(): void {
      for (const [session, { allowance }] of guarded) if (allowance.open === 0) session.close();
    },
    /** Closes all sessions: each ends with its last stream. */
    close(): void {
      for (const session of guarded.keys()) session.close();
    },
    stop(): void {
      clearInterval(sweep);
    },
  };
}
