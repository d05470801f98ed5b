import { UnderWay } from "../collections/under-way.ts";

/** Ends the live streams of this process when it shuts down. */
export interface StreamDrain {
  /**
   * Registers a stream, whose `end` is called with the reason when it must end.
   * @returns a function to call when the stream is over
   */
  join(end: (reason: Error) => void): () => void;
  /**
   * Ends every stream with `reason`, each at a random time within `spreadMs`, so that not all
   * clients reconnect to the other replicas at once. Streams that open later end at once.
   */
  end(reason: Error, spreadMs: number): void;
}

/** The time to end the streams: this long for each, and `spreadMs` for all at most. */
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
