import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";

/** Deadline of a call or a process that a test waits for, in milliseconds. */
export const timeoutMs = 20_000;

/** Options of a call that ends in time. A client's own deadline timer would outlive a stream left early. */
export function inTime(): { signal: AbortSignal } {
  return { signal: AbortSignal.timeout(timeoutMs) };
}

/**
 * How long `until` asks, in milliseconds: a Sentinel that stood still for 2 s, as on a busy machine,
 * fails nobody over for 30 s, and votes that were split are cast again after 6 s.
 */
const untilMs = 80_000;

/**
 * Asks until the answer is neither undefined nor false, and resolves with it. A question that throws
 * is asked again as well, and its last error is the cause of the failure. Rejects when it takes too
 * long, with what was waited for, or when the signal aborts, with its reason.
 */
export async function until<T>(
  ask: () => T | Promise<T>,
  what = "",
  signal?: AbortSignal,
): Promise<Exclude<T, undefined | false>> {
  const endsMs = performance.now() + untilMs;
  for (;;) {
    let cause: unknown;
    try {
      const found = await ask();
      if (found !== undefined && found !== false) return found as Exclude<T, undefined | false>;
    } catch (error) {
      cause = error;
    }
    signal?.throwIfAborted();
    if (performance.now() > endsMs) {
      const message = `in vain for ${untilMs / 1_000} s: ${what || ask}`;
      throw Object.assign(new assert.AssertionError({ message }), { cause });
    }
    await delay(10);
  }
}
