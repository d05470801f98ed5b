import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";

/** Longest time in which a healthy replica answers `/healthz`, in milliseconds. */
const longestMs = 1_500;
/** After this many milliseconds without an answer the replica is blocked: the check stops. */
const stillMs = 20_000;
const rounds = 3;

type Attack = (signal: AbortSignal) => Promise<unknown>;

/**
 * Asserts that `/healthz` of a gateway in another process keeps answering under an attack. Other
 * load on the machine is allowed for: the limit is multiplied by the factor by which it slows down
 * this process, and it is enough if one round stays within the limit.
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

/** Factor by which other load slows this process down now; 1 on a machine without other load. */
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
  // `await attacked` below reports its failure, after the last health check.
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
