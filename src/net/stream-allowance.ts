import type { ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import { UnderWay } from "../collections/under-way.ts";
import type { ConnectionLimits } from "./connection-limits.ts";

/** The limit on concurrent streams that clients receive when they connect. */
export function firstAllowance(limits: ConnectionLimits): number {
  return Math.min(limits.initialConcurrentStreams, limits.maxConcurrentStreams);
}

/** The limit on one connection's concurrent streams. */
export type StreamAllowance = ReturnType<typeof allowStreams>;

/**
 * Raises a connection's stream limit as its client proves that it uses its streams. Otherwise a
 * client could open a thousand at once, leave them unfinished or unread, be cut, and connect again.
 * Each stream that ended well allows one more, and each stream that is still read after a while two
 * more. Clients queue calls until they may open them. So a connection in use soon reaches its
 * maximum, a client that reconnects with a thousand watches has all of them open within a few
 * seconds, and a flood stays at the first limit.
 */
export function allowStreams(session: ServerHttp2Session, limits: ConnectionLimits) {
  const { maxConcurrentStreams } = limits;
  const first = firstAllowance(limits);
  const open = new UnderWay<{ readonly stream: ServerHttp2Stream; readonly sinceMs: number }>();
  let allowed = first;
  let endedWell = 0;

  function raise(to: number): void {
    const next = Math.min(to, maxConcurrentStreams);
    const isStep = next - allowed >= first || (next === maxConcurrentStreams && next > allowed);
    // A client that has not acknowledged the last SETTINGS gets no further ones.
    if (!isStep || session.destroyed || session.closed || session.pendingSettingsAck) return;
    allowed = next;
    session.settings({ maxConcurrentStreams: next });
  }

  session.on("stream", (stream) => {
    const member = open.add({ stream, sinceMs: performance.now() });
    stream.on("close", () => {
      member.leave();
      if (stream.rstCode !== 0) return;
      endedWell += 1;
      raise(first + endedWell);
    });
  });

  return {
    /** Streams that are open now. */
    get open(): number {
      return open.size;
    },
    /** The current limit. */
    get allowed(): number {
      return allowed;
    },
    /** Checks the open streams, and raises the limit for those that the client reads. */
    review(): void {
      if (open.size < allowed / 2 || allowed === maxConcurrentStreams) return;
      const untilMs = performance.now() - provenAfterMs;
      let proven = 0;
      for (const { stream, sinceMs } of open) if (sinceMs < untilMs && isRead(stream)) proven += 1;
      raise(first + endedWell + roomOfProven * proven);
    },
  };
}

/** How long a stream must be open before it counts as read, and how many more it then allows. */
const provenAfterMs = 500;
const roomOfProven = 2;

/** Whether a stream's request is complete and its response has begun and is read. */
function isRead(stream: ServerHttp2Stream): boolean {
  return stream.readableEnded && stream.headersSent && stream.writableLength === 0;
}
