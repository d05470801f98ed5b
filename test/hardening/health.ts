import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";

/** The longest that a healthy replica takes to say so, in milliseconds. */
const longestMs = 500;
/** After this long without an answer the replica stands still: nobody waits on. */
const stillMs = 5_000;
const rounds = 3;

type Attack = (signal: AbortSignal) => Promise<unknown>;

/**
 * Asserts that `/healthz` of a process of its own keeps answering while it is attacked. What others
 * take of the machine is no fault of the gateway: what it waits without an attack is allowed besides,
 * and one of the rounds has to be calm.
 * @param attackMs deadline of one round
 */
export async function keepsAnswering(
  adminUrl: string,
  attack: Attack,
  attackMs = 10_000,
): Promise<void> {
  const told: string[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const calm = await longestWaitMs(adminUrl, (signal) => delay(100, undefined, { signal }));
    const wait = await longestWaitMs(adminUrl, attack, attackMs);
    if (wait <= longestMs + calm) return;
    told.push(`${Math.round(wait)} ms, ${Math.round(calm)} without it`);
    if (wait >= stillMs) break;
  }
  assert.fail(`/healthz was waited for while this went on: ${told.join("; ")}`);
}

async function longestWaitMs(
  adminUrl: string,
  attack: Attack,
  attackMs = stillMs,
): Promise<number> {
  let longest = 0;
  let over = false;
  const attacked = attack(AbortSignal.timeout(attackMs)).finally(() => {
    over = true;
  });
  // Its failure is told below, when nobody asks for the health any more.
  attacked.catch(() => {});
  do {
    const startedMs = performance.now();
    const healthy = await isHealthy(adminUrl);
    longest = Math.max(longest, healthy ? performance.now() - startedMs : stillMs);
    await delay(5);
  } while (!over && longest < stillMs);
  if (longest < stillMs) await attacked;
  return longest;
}

async function isHealthy(adminUrl: string): Promise<boolean> {
  try {
    const signal = AbortSignal.timeout(stillMs);
    return (await fetch(`${adminUrl}/healthz`, { signal })).status === 200;
  } catch {
    return false;
  }
}
