import { UnderWay } from "../collections/under-way.ts";

/**
 * Limits the memory of all callback bodies until their signatures are checked: anybody can send
 * them, and they bypass the admission of calls.
 */
export interface BodyBudget {
  /** Registers a body. Calls `cut` once if the body is dropped to free memory. */
  open(cut: () => void): HeldBody;
  /** Memory of all bodies now, in bytes. */
  readonly bytes: number;
}

/** One body's share of the budget. */
export interface HeldBody {
  /** Counts further bytes. If that exceeds the budget, bodies are dropped, perhaps this one. */
  grow(bytes: number): void;
  /** Releases the body's bytes. */
  close(): void;
}

interface Held extends HeldBody {
  readonly startedMs: number;
  readonly cut: () => void;
  bytes: number;
}

/**
 * A budget of `maxBytes`. Beyond it, bodies are dropped by their bytes times their age, greatest
 * first: the service's own bodies are small and arrive at once. Dropping continues until an eighth
 * of the budget is free, so that it happens rarely.
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
