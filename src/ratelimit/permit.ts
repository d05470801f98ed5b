import type { Permit } from "./bucket.ts";

/** A permit of which only the first thing that it is told counts. */
export function settledOnce({ observe, rejected, release }: Permit): Permit {
  let settled = false;
  const once = (settle: () => void) => {
    if (settled) return;
    settled = true;
    settle();
  };
  return {
    observe: (answer) => once(() => observe(answer)),
    rejected: (answer) => once(() => rejected(answer)),
    release: () => once(release),
  };
}
