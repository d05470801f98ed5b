import type { ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import { UnderWay } from "../collections/under-way.ts";

export interface StreamLimits {
  /** Calls at once on an HTTP/2 connection that is new. Clients count on no less. */
  readonly initialConcurrentStreams: number;
  /** Calls at once on one HTTP/2 connection. */
  readonly maxConcurrentStreams: number;
}

/** The limit that clients get when they connect. */
export function firstAllowance(limits: StreamLimits): number {
  return Math.min(limits.initialConcurrentStreams, limits.maxConcurrentStreams);
}

/** How many streams a connection may have. */
export interface StreamAllowance {
  /** So many at once, as things stand. */
  readonly allowed: number;
  /** Looks at the streams that are open: those that behave make room for further ones. */
  review(): void;
}

/**
 * Lets a connection have more streams as it shows what they are for. Whoever connects could open a
 * thousand at once, leave them unfinished or unread, be cut, and come again. So each stream that ended
 * well lets its connection have one more, and each that is read on after a while two: of a service that
 * comes back with a thousand watches, all are open within a few seconds. Clients wait until they may:
 * a connection that is used gets to its maximum in no time, and a flood stays where it began.
 */
export function allowStreams(session: ServerHttp2Session, limits: StreamLimits): StreamAllowance {
  const { maxConcurrentStreams } = limits;
  const first = firstAllowance(limits);
  const open = new UnderWay<{ readonly stream: ServerHttp2Stream; readonly sinceMs: number }>();
  let allowed = first;
  let endedWell = 0;

  function raise(to: number): void {
    const next = Math.min(to, maxConcurrentStreams);
    const isStep = next - allowed >= first || (next === maxConcurrentStreams && next > allowed);
    // One that does not acknowledge the last settings gets no further ones.
    if (!isStep || session.destroyed || session.closed || session.pendingSettingsAck) return;
    allowed = next;
    session.settings({ maxConcurrentStreams: next });
  }

  if (first < maxConcurrentStreams) {
    session.on("stream", (stream) => {
      if (allowed === maxConcurrentStreams) return;
      const member = open.add({ stream, sinceMs: performance.now() });
      stream.on("close", () => {
        member.leave();
        if (stream.rstCode !== 0 || allowed === maxConcurrentStreams) return;
        endedWell += 1;
        raise(first + endedWell);
      });
    });
  }

  return {
    get allowed() {
      return allowed;
    },
    review() {
      if (open.size < allowed / 2 || allowed === maxConcurrentStreams) return;
      const untilMs = performance.now() - provenAfterMs;
      let proven = 0;
      for (const { stream, sinceMs } of open) if (sinceMs < untilMs && isRead(stream)) proven += 1;
      raise(first + endedWell + roomOfProven * proven);
    },
  };
}

/** How long a stream is open before it shows anything, and how many more it is good for then. */
const provenAfterMs = 500;
const roomOfProven = 2;

/** A stream that was asked for in full, whose answer has begun and is read. */
function isRead(stream: ServerHttp2Stream): boolean {
  return stream.readableEnded && stream.headersSent && stream.writableLength === 0;
}
