import type { Permit } from "./bucket.ts";

/** A permit that counts only the first call of its methods. */
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
