/** Ends the live streams of this process when it shuts down. */
export interface StreamDrain {
  /** Hands a stream the signal that tells it to end; `leave` when it is over. */
  join(): StreamPlace;
  /**
   * Ends every stream with `reason`, each at a moment of its own within `spreadMs`, so that its
   * readers do not all come back at once, elsewhere. Streams that open from now on end at once.
   */
  end(reason: Error, spreadMs: number): void;
}

export interface StreamPlace {
  readonly signal: AbortSignal;
  leave(): void;
}

/** A few streams need no time to spread: so much for each, and `spreadMs` for all at most. */
const spreadPerStreamMs = 10;

export function createStreamDrain(): StreamDrain {
  const places = new Set<Place>();
  let ended: Error | undefined;

  return {
    join() {
      const place: Place = { controller: new AbortController(), turn: undefined };
      places.add(place);
      if (ended) place.controller.abort(ended);
      return {
        signal: place.controller.signal,
        leave() {
          clearTimeout(place.turn);
          places.delete(place);
        },
      };
    },
    end(reason, spreadMs) {
      ended = reason;
      const windowMs = Math.min(spreadMs, places.size * spreadPerStreamMs);
      for (const place of places) {
        const end = () => place.controller.abort(reason);
        place.turn = setTimeout(end, Math.random() * windowMs);
      }
    },
  };
}

interface Place {
  readonly controller: AbortController;
  turn: NodeJS.Timeout | undefined;
}
