/** Ends the live streams of this process when it shuts down. */
export interface StreamDrain {
  /** Hands a stream the signal that tells it to end; `leave` when it is over. */
  join(): DrainedStream;
  /**
   * Ends every stream with `reason`, each at a moment of its own within `spreadMs`, so that its
   * readers do not all come back at once, elsewhere. Streams that open from now on end at once.
   */
  end(reason: Error, spreadMs: number): void;
}

export interface DrainedStream {
  readonly signal: AbortSignal;
  leave(): void;
}

/** A few streams need no time to spread: so much for each, and `spreadMs` for all at most. */
const spreadPerStreamMs = 10;

export function createStreamDrain(): StreamDrain {
  const streams = new Set<OpenStream>();
  let ended: Error | undefined;

  return {
    join() {
      const stream: OpenStream = { controller: new AbortController(), turn: undefined };
      streams.add(stream);
      if (ended) stream.controller.abort(ended);
      return {
        signal: stream.controller.signal,
        leave() {
          clearTimeout(stream.turn);
          streams.delete(stream);
        },
      };
    },
    end(reason, spreadMs) {
      ended = reason;
      const windowMs = Math.min(spreadMs, streams.size * spreadPerStreamMs);
      for (const stream of streams) {
        const end = () => stream.controller.abort(reason);
        stream.turn = setTimeout(end, Math.random() * windowMs);
      }
    },
  };
}

interface OpenStream {
  readonly controller: AbortController;
  turn: NodeJS.Timeout | undefined;
}
