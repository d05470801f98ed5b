import { UnderWay } from "../collections/under-way.ts";

/** Ends the live streams of this process when it shuts down. */
export interface StreamDrain {
  /** Has a stream told to end, and why. @returns what is called when it is over */
  join(end: (reason: Error) => void): () => void;
  /**
   * Ends every stream with `reason`, each at a moment of its own within `spreadMs`, so that its
   * readers do not all come back at once, elsewhere. Streams that open from now on end at once.
   */
  end(reason: Error, spreadMs: number): void;
}

/** A few streams need no time to spread: so much for each, and `spreadMs` for all at most. */
const spreadPerStreamMs = 10;

export function createStreamDrain(): StreamDrain {
  const streams = new UnderWay<OpenStream>();
  let ended: Error | undefined;

  return {
    join(end) {
      const stream: OpenStream = { end, turn: undefined };
      const member = streams.add(stream);
      if (ended) end(ended);
      return () => {
        clearTimeout(stream.turn);
        member.leave();
      };
    },
    end(reason, spreadMs) {
      ended = reason;
      const windowMs = Math.min(spreadMs, streams.size * spreadPerStreamMs);
      for (const stream of streams) {
        stream.turn = setTimeout(() => stream.end(reason), Math.random() * windowMs);
      }
    },
  };
}

interface OpenStream {
  readonly end: (reason: Error) => void;
  turn: NodeJS.Timeout | undefined;
}
