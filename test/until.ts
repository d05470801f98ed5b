import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";

/** Deadline of a call or a process that a test waits for, in milliseconds. */
export const timeoutMs = 60_000;

/**
 * Options of a call that is aborted after `timeoutMs`. A client's own deadline timer would outlive
 * a stream that is left early.
 */
export function inTime(): { signal: AbortSignal } {
  return { signal: AbortSignal.timeout(timeoutMs) };
}

/**
 * How long `until` polls, in milliseconds. A Sentinel that was suspended for 2 s, as on a busy
 * machine, starts no failover for 30 s, and a split vote is repeated after 6 s.
 */
const untilMs = 80_000;

/**
 * Calls `ask` until it returns neither undefined nor false, and resolves with that value. If `ask`
 * throws, it is called again too; its last error becomes the cause of a failure. Rejects after
 * `untilMs` with an error that names `what`, or with the signal's reason when the signal aborts.
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
