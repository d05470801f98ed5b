import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";

/** The longest that a healthy replica takes to say so, in milliseconds. */
const longestMs = 1_500;
/** After this long without an answer the replica stands still: nobody waits on. */
const stillMs = 20_000;
const rounds = 3;

type Attack = (signal: AbortSignal) => Promise<unknown>;

/**
 * Asserts that `/healthz` of a process of its own keeps answering while it is attacked. What others
 * take of the machine is no fault of the gateway: as much longer as this process's own work takes is
 * allowed, and one of the rounds has to be calm.
 * @param attackMs deadline of one round
 */
export async function keepsAnswering(
  adminUrl: string,
  attack: Attack,
  attackMs = 2 * stillMs,
): Promise<void> {
  const told: string[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const before = slowness();
    const wait = await maxWaitMs(adminUrl, attack, attackMs);
    const allowed = longestMs * Math.max(before, slowness());
    if (wait <= allowed && wait < stillMs) return;
    told.push(`${Math.round(wait)} of ${Math.round(allowed)} ms`);
    if (wait >= stillMs) break;
  }
  assert.fail(`/healthz was waited for while this went on: ${told.join("; ")}`);
}

/** How much longer than alone on the machine some work takes now; 1 on a machine without other work. */
function slowness(): number {
  const startedMs = performance.now();
  const before = process.cpuUsage();
  let cpuMs = 0;
  while (cpuMs < 30) {
    const { user, system } = process.cpuUsage(before);
    cpuMs = (user + system) / 1_000;
  }
  return Math.max(1, (performance.now() - startedMs) / cpuMs);
}

async function maxWaitMs(adminUrl: string, attack: Attack, attackMs: number): Promise<number> {
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
