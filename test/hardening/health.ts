import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";

/** The longest that a healthy replica takes to say so, in milliseconds. */
const longestMs = 500;
/** After this long without an answer the replica stands still: nobody waits on. */
const givenUpMs = 5_000;
const rounds = 3;

/**
 * Asserts that `/healthz` of a process of its own keeps answering while it is attacked. What another
 * process took of the machine for a moment is no fault of the gateway: one of the rounds has to be calm.
 */
export async function keepsAnswering(
  adminUrl: string,
  attack: (signal: AbortSignal) => Promise<unknown>,
): Promise<void> {
  const waits: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const wait = await longestWaitMs(adminUrl, attack);
    waits.push(wait);
    if (wait <= longestMs) return;
    if (wait >= givenUpMs) break;
  }
  assert.fail(`/healthz took ${waits.map(Math.round).join(", ")} ms while this went on`);
}

async function longestWaitMs(
  adminUrl: string,
  attack: (signal: AbortSignal) => Promise<unknown>,
): Promise<number> {
  let longest = 0;
  let over = false;
  const signal = AbortSignal.timeout(givenUpMs);
  const attacked = attack(signal).finally(() => {
    over = true;
  });
  // Its failure is told below, when nobody asks for the health any more.
  attacked.catch(() => {});
  do {
    const startedMs = performance.now();
    const healthy = await isHealthy(adminUrl);
    longest = Math.max(longest, healthy ? performance.now() - startedMs : givenUpMs);
    await delay(5);
  } while (!over && longest < givenUpMs);
  if (longest < givenUpMs) await attacked;
  return longest;
}

async function isHealthy(adminUrl: string): Promise<boolean> {
  try {
    const { status } = await fetch(`${adminUrl}/healthz`, {
      signal: AbortSignal.timeout(givenUpMs),
    });
    return status === 200;
  } catch {
    return false;
  }
}
