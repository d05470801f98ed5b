import { constants, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { UnderWay } from "../collections/under-way.ts";
import { createAllowance } from "./allowance.ts";
import { ageConnection } from "./connection-age.ts";
import type { ConnectionLimits } from "./connection-limits.ts";
import type { Cut, OnCut } from "./cut.ts";

/**
 * Cuts HTTP/2 sessions for what nghttp2 and Node allow. These cut by themselves: more than 8
 * CONTINUATIONs, resets beyond a rate, streams beyond the limit, empty DATA, PRIORITY and unknown
 * frames by the thousand, and acknowledgements that the client does not read. They answer any
 * number of PINGs and SETTINGS if the client reads the answers, they have no time-out for a client
 * that only connects, or that sends headers without end, and they wait for ever until a client closes
 * a connection that they closed. PINGs do not keep a session open.
 *
 * A peer that has vanished without closing its connection is found by PING: TCP alone would notice
 * only when data is sent to the peer, and then only after minutes. A session that either side has
 * closed (GOAWAY) while streams are open is checked in any case, by SETTINGS: Node sends no more
 * PINGs on it. nghttp2 reads no more of it once its peer breaks the protocol, and Node then hears
 * neither of that nor of the peer's end.
 */
export function createSessionGuard(limits: ConnectionLimits, onCut: OnCut) {
  const guarded = new Map<ServerHttp2Session, ReturnType<typeof guardSession>>();
  const sweep = setInterval(
    () => {
      for (const { review } of guarded.values()) review();
    },
    Math.min(limits.lingerMs, limits.idleTimeoutMs, limits.keepAliveTimeoutMs, 1_000),
  ).unref();

  return {
    add(session: ServerHttp2Session, socket: Socket): void {
      guarded.set(session, guardSession(session, socket, limits, onCut));
      socket.on("close", () => guarded.delete(session));
    },
    of: (session: ServerHttp2Session) => guarded.get(session),
    /** Closes the sessions without an open stream. */
    closeIdle(): void {
      for (const [session, { open }] of guarded) if (open.size === 0) session.close();
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

/**
 * Guards one session. Its stream limit rises as its client proves that it uses its streams. Otherwise
 * a client could open a thousand at once, leave them unfinished or unread, be cut, and connect again.
 * Each stream that ended well allows one more, and each stream that is still read after a while two
 * more. Clients queue calls until they may open them. So a connection in use soon reaches its
 * maximum, a client that reconnects with a thousand watches has all of them open within a few
 * seconds, and a flood stays at the first limit.
 */
function guardSession(
  session: ServerHttp2Session,
  socket: Socket,
  limits: ConnectionLimits,
  onCut: OnCut,
) {
  const { initialConcurrentStreams: first, maxConcurrentStreams } = limits;
  const { resets, keepAliveIntervalMs } = limits;
  const open = new UnderWay<{ readonly stream: ServerHttp2Stream; readonly sinceMs: number }>();
  let allowed = first;
  let endedWell = 0;
  let why: Cut = "protocol";
  let idleSinceMs = performance.now();
  let overSinceMs: number | undefined;
  /** When the peer was last known to be there, and when it was asked since. */
  let heardMs = idleSinceMs;
  let askedMs: number | undefined;
  const mayReset = createAllowance({
    // All streams that a client may have can time out together.
    get burst() {
      return Math.min(resets.burst, 2 * allowed);
    },
    perSecond: resets.perSecond,
  });
  const mayPing = createAllowance(limits.pings);
  const maySet = createAllowance(limits.settings);

  const { ending } = ageConnection(limits, socket, () => session.close());
  session.on("stream", (stream) => {
    const member = open.add({ stream, sinceMs: performance.now() });
    stream.on("close", () => {
      member.leave();
      idleSinceMs = performance.now();
      if (stream.rstCode === constants.NGHTTP2_NO_ERROR) {
        endedWell += 1;
        raise(first + endedWell);
      } else if (!mayReset()) cut("reset_flood");
    });
  });
  session.on("ping", () => mayPing() || cut("ping_flood"));
  session.on("remoteSettings", () => maySet() || cut("settings_flood"));
  // `error` is also emitted when the client breaks the connection, which is no cut.
  session.on("error", ({ code = "" }: NodeJS.ErrnoException) => {
    if (why !== "protocol" || code.startsWith("ERR_HTTP2_")) onCut(why);
  });

  function raise(to: number): void {
    const next = Math.min(to, maxConcurrentStreams);
    const isStep = next - allowed >= first || (next === maxConcurrentStreams && next > allowed);
    // A client that has not acknowledged the last SETTINGS gets no further ones.
    if (!isStep || session.destroyed || session.closed || session.pendingSettingsAck) return;
    allowed = next;
    session.settings({ maxConcurrentStreams: next });
  }

  /** Cuts the session, also for other reasons than those here. */
  function cut(reason: Cut): void {
    if (session.destroyed) return;
    why = reason;
    session.destroy(new Error(reason), constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }

  function heard(): void {
    askedMs = undefined;
    heardMs = performance.now();
  }

  /** Asks whether the peer is there, and cuts its connection if it has not answered. */
  function checkPeer(nowMs: number): void {
    if (session.destroyed) return;
    if (askedMs !== undefined) {
      // Closing only the session would wait for unsent data, which the peer no longer takes.
      if (nowMs - askedMs >= limits.keepAliveTimeoutMs) socket.destroy();
    } else if (nowMs - heardMs >= (keepAliveIntervalMs || limits.idleTimeoutMs)) {
      askedMs = nowMs;
      if (session.closed) session.settings({}, heard);
      // `ping` returns false while too many PINGs are unanswered: try again after the next interval.
      else if (keepAliveIntervalMs === 0 || !session.ping(heard)) heard();
    }
  }

  /**
   * Closes the session if it is idle, and cuts a connection that was closed or whose peer has
   * vanished; raises the limit for streams that the client reads.
   */
  function review(): void {
    const nowMs = performance.now();
    checkPeer(nowMs);
    if (open.size === 0 && nowMs - idleSinceMs >= limits.idleTimeoutMs) session.close();
    if (open.size >= allowed / 2 && allowed < maxConcurrentStreams) {
      let proven = 0;
      for (const { stream, sinceMs } of open) {
        if (sinceMs < nowMs - provenAfterMs && isRead(stream)) proven += 1;
      }
      raise(first + endedWell + roomOfProven * proven);
    }
    if (!session.destroyed && !(session.closed && open.size === 0)) return;
    overSinceMs ??= nowMs;
    if (nowMs - overSinceMs < limits.lingerMs) return;
    onCut("lingering");
    socket.destroy();
  }

  return { open, ending, cut, review };
}

/** How long a stream must be open before it counts as read, and how many more it then allows. */
const provenAfterMs = 500;
const roomOfProven = 2;

/** Whether a stream's request is complete and its response has begun and is read. */
function isRead(stream: ServerHttp2Stream): boolean {
  return stream.readableEnded && stream.headersSent && stream.writableLength === 0;
}
