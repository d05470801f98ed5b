import { UnderWay } from "../collections/under-way.ts";

/**
 * What all callback bodies together may hold in memory before their signatures are checked: anybody
 * may send them, and they pass by the admission of calls.
 */
export interface BodyBudget {
  /** Takes a body in. `cut` is called once, if it has to give its bytes up. */
  open(cut: () => void): HeldBody;
  /** What all bodies hold now. */
  readonly bytes: number;
}

/** One body's part of the budget. */
export interface HeldBody {
  /** It holds so many bytes more. When that is too much for all, this body may be the one to go. */
  grow(bytes: number): void;
  /** It holds nothing any more. */
  close(): void;
}

interface Held extends HeldBody {
  readonly startedMs: number;
  readonly cut: () => void;
  bytes: number;
}

/**
 * A budget of `maxBytes`. Beyond it the largest and slowest bodies are cut first, by their bytes
 * times their age: what the service sends is small and there at once. An eighth is made free at a
 * time, so that the search for them is rare.
 */
export function createBodyBudget(maxBytes: number, now = () => performance.now()): BodyBudget {
  const bodies = new UnderWay<Held>();
  let total = 0;

  function makeRoom(): void {
    const at = now();
    const weights = [...bodies].map((body) => ({
      body,
      weight: body.bytes * (at - body.startedMs + 1),
    }));
    weights.sort((a, b) => b.weight - a.weight);
    for (const { body } of weights) {
      if (total <= maxBytes * (7 / 8)) return;
      body.close();
      body.cut();
    }
  }

  return {
    open(cut) {
      const body: Held = {
        ...{ startedMs: now(), bytes: 0, cut },
        grow(bytes) {
          if (member.hasLeft) return;
          body.bytes += bytes;
          total += bytes;
          if (total > maxBytes) makeRoom();
        },
        close() {
          if (member.hasLeft) return;
          member.leave();
          total -= body.bytes;
        },
      };
      const member = bodies.add(body);
      return body;
    },
    get bytes() {
      return total;
    },
  };
}
