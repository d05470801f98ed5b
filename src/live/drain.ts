import { UnderWay } from "../collections/under-way.ts";

/** Ends the long answers of this process (streams, waits, sockets) when it shuts down. */
export class Drain {
  readonly #open = new UnderWay<Open>();
  #ended: Error | undefined;

  /**
   * Registers an answer, whose `end` is called with the reason when it must end, which is at once
   * if the drain has begun.
   * @returns a function to call when the answer is over
   */
  join(end: (reason: Error) => void): () => void {
    const open: Open = { end, turn: undefined };
    const member = this.#open.add(open);
    if (this.#ended) end(this.#ended);
    return () => {
      clearTimeout(open.turn);
      member.leave();
    };
  }

  /**
   * Ends every answer with `reason`, each at a random time within `spreadMs`, so that not all
   * clients reconnect to the other replicas at once.
   */
  end(reason: Error, spreadMs: number): void {
    this.#ended = reason;
    const windowMs = Math.min(spreadMs, this.#open.size * spreadPerAnswerMs);
    for (const open of this.#open) {
      if (windowMs === 0) open.end(reason);
      else open.turn = setTimeout(() => open.end(reason), Math.random() * windowMs);
    }
  }
}

/** Each answer's share of the window, so that a few end fast; at most `spreadMs` for all. */
const spreadPerAnswerMs = 10;

interface Open {
  readonly end: (reason: Error) => void;
  turn: NodeJS.Timeout | undefined;
}
