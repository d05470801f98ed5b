import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Ledger } from "../src/ledger/ledger.ts";
import { createMemoryLedger } from "../test/ledger/create.ts";
import { payment } from "../test/ledger/entries.ts";
import { replica } from "../test/ledger/redis/rig.ts";
import { openLog } from "../test/ledger/sqlite/rig.ts";
import { addReplica, startCluster } from "../test/redis/cluster.ts";
import { startSentinelSet } from "../test/redis/sentinel.ts";
import { startRedis } from "../test/redis/server.ts";

/**
 * Callbacks that each store accepts a second, and how long one waits until it is stored (without
 * HTTP, which is the same for all). Each of `senders` senders sends its next callback when the last
 * one was acknowledged. Redis writes each one through to disk, as DATA_DIR does; Sentinel and
 * Cluster also wait for their replicas.
 */
const senders = [1, 64];
const durationMs = Number(process.env.BENCH_MS ?? 4_000);
const written: [string, string][] = [
  ["appendonly", "yes"],
  ["appendfsync", "always"],
];
const retentionMs = 7 * 86_400_000;
const directory = await mkdtemp(join(tmpdir(), "bench-stores-"));

const stores: readonly [name: string, open: () => Promise<Opened>][] = [
  [
    "memory",
    async () => {
      const log = createMemoryLedger({ retentionMs });
      return { log, close: () => log.close() };
    },
  ],
  ["DATA_DIR", () => openLog(directory)],
  [
    "Redis alone",
    async () => {
      const server = await startRedis(written);
      return onRedis(server.url, server);
    },
  ],
  [
    "Sentinel",
    async () => {
      const set = await startSentinelSet(written);
      return onRedis(set.url, set, "all");
    },
  ],
  [
    "Cluster",
    async () => {
      const cluster = await startCluster(3, written);
      const replicas = await Promise.all([0, 1, 2].map((of) => addReplica(cluster, of)));
      const close = async () => {
        await Promise.all(replicas.map((one) => one.close()));
        await cluster.close();
      };
      return onRedis(cluster.url, { close }, "all");
    },
  ],
];

async function onRedis(
  url: string,
  redis: { close(): Promise<void> },
  minReplicas: "all" | 0 = 0,
): Promise<Opened> {
  const { log, close } = await replica(url, { minReplicas });
  return {
    log,
    async close() {
      await close();
      await redis.close();
    },
  };
}

interface Opened {
  readonly log: Ledger;
  close(): Promise<void>;
}

async function measure(log: Ledger, count: number, run: string): Promise<string> {
  const waits: number[] = [];
  const end = performance.now() + durationMs;
  const send = async (sender: number) => {
    for (let i = 0; performance.now() < end; i++) {
      const externalId = `order-${run}-${sender}-${i}`;
      const entry = payment({ externalId, paymentId: externalId, status: "success" });
      const start = performance.now();
      await log.append("shop", entry);
      waits.push(performance.now() - start);
    }
  };
  await Promise.all(Array.from({ length: count }, (_, sender) => send(sender)));
  waits.sort((a, b) => a - b);
  const at = (share: number) => (waits[Math.floor(waits.length * share)] ?? 0).toFixed(2);
  const perSecond = Math.round(waits.length / (durationMs / 1_000));
  return `${perSecond}/s  p50 ${at(0.5)} ms  p99 ${at(0.99)} ms`;
}

for (const [name, open] of stores) {
  const { log, close } = await open();
  await measure(log, 8, "warm-up");
  for (const count of senders) {
    const figures = await measure(log, count, `${count}`);
    console.log(`${name.padEnd(12)} ${String(count).padStart(3)} senders: ${figures}`);
  }
  await close();
}
await rm(directory, { recursive: true });
