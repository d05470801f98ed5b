import { setTimeout as delay } from "node:timers/promises";
import { startMoneyUpstream } from "../../gateway/money-upstream.ts";
import { password } from "../../gateway/serving.ts";
import { seeded } from "../../random.ts";
import { until } from "../../until.ts";
import type { Fault } from "./faults.ts";
import { startGateways } from "./gateways.ts";
import { startLoad } from "./load.ts";
import { startAlone, startClusterOfSix, startSentinels, type Topology } from "./topologies.ts";

const starters = { alone: startAlone, sentinel: startSentinels, cluster: startClusterOfSix };

/**
 * Runs three gateways on a topology of their own under a random load, with a fault in the middle.
 * @param everyMs how often a client begins something; by default 40 times a second
 * @returns the history, and what the gateways wrote to standard error, past their log
 */
export async function runFault(
  kind: Topology["kind"],
  fault: Fault,
  seed: number,
  everyMs?: number,
) {
  const random = seeded(seed);
  const closing: (() => Promise<unknown>)[] = [];
  try {
    const topology = await starters[kind]();
    closing.push(() => topology.close());
    const upstream = await startMoneyUpstream(password);
    closing.push(() => upstream.close());
    const gateways = await startGateways(topology, upstream.url);
    closing.push(() => Promise.all(gateways.map((gateway) => gateway.kill())));
    upstream.answerMs = 20;
    const load = startLoad(gateways, upstream, random, everyMs);
    closing.push(() => load.stop());
    await until(async () => load.acknowledged() > 20);
    await delay(random() * 500);
    await fault(topology, random, { gateways, upstream });
    await delay(1_500 + random() * 1_000);
    await topology.mend();
    await delay(1_000);
    await until(() => load.acknowledged() > 50 && upstream.requests.length > 25);
    const history = await load.finish();
    return { history, strayLines: gateways.flatMap(({ spawned }) => spawned.errors) };
  } finally {
    for (const close of closing.reverse()) await close();
  }
}
