/**
 * Callbacks a second, and the time of one, by the number of Redis replicas that must have stored it
 * (REDIS_MIN_REPLICAS): a primary with two replicas and three Sentinels, and one gateway, all on
 * this machine.
 *
 *   node bench/redis-replicas.ts [seconds]
 */
import { setTimeout as delay } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { EventService } from "../src/gen/payments/v1/event_service_pb.ts";
import { sign } from "../src/wire/signature.ts";
import { freePorts, spawnCli } from "../test/gateway/spawn.ts";
import { startSentinelSet } from "../test/redis/sentinel.ts";
import { until } from "../test/until.ts";

const seconds = Number(process.argv[2] ?? 5);
const password = "password";
const callers = 32;

const set = await startSentinelSet([["appendonly", "yes"]]);
try {
  console.log(
    "| REDIS_MIN_REPLICAS | callbacks/s, 32 at once | p50 | p99 | one at a time, p50 | p99 | until shown, p50 | p99 |",
  );
  console.log("| --- | --- | --- | --- | --- | --- | --- | --- |");
  for (const minReplicas of ["0", "1", "all"]) {
    const { many, alone, shown } = await measure(minReplicas);
    const cells = [
      `${Math.round(many.length / seconds)}`,
      ...[many, alone, shown].flatMap((all) => [quantile(all, 0.5), quantile(all, 0.99)]),
    ];
    console.log(`| \`${minReplicas}\` | ${cells.join(" | ")} |`);
  }
} finally {
  await set.close();
}

async function measure(minReplicas: string) {
  const gateway = spawnCli(["serve"], {
    ...freePorts,
    UPSTREAM_LOGIN: "shop",
    UPSTREAM_PASSWORD: password,
    LOG_LEVEL: "warn",
    REDIS_URL: set.url,
    REDIS_PREFIX: `bench-${minReplicas}`,
    REDIS_MIN_REPLICAS: minReplicas,
  });
  const ends = new AbortController();
  try {
    const { public: publicUrl = "", rpc = "" } = await gateway.ready;
    const url = `${publicUrl}/callbacks/default/payments`;
    let n = 0;
    const send = async (): Promise<{ id: string; startedMs: number; tookMs: number }> => {
      const id = `${minReplicas}-${n++}`;
      const body = JSON.stringify({
        external_id: id,
        operation: "payment",
        details: { payment_id: id, status: "success" },
      });
      const headers = { "x-service-signature": sign(Buffer.from(body), password) };
      const startedMs = performance.now();
      const answer = await fetch(url, { method: "POST", headers, body });
      await answer.arrayBuffer();
      if (answer.status !== 200) throw new Error(`answered ${answer.status}`);
      return { id, startedMs, tookMs: performance.now() - startedMs };
    };
    await until(async () => (await send()).tookMs > 0);
    const load = async (ms: number, at: number): Promise<number[]> => {
      const took: number[] = [];
      const endMs = performance.now() + ms;
      const caller = async () => {
        while (performance.now() < endMs) took.push((await send()).tookMs);
      };
      await Promise.all(Array.from({ length: at }, caller));
      return took;
    };
    await load(2_000, callers);
    const many = await load(seconds * 1_000, callers);

    const seenMs = new Map<string, number>();
    const events = createClient(
      EventService,
      createConnectTransport({ baseUrl: rpc, httpVersion: "1.1" }),
    ).streamEvents({}, { signal: ends.signal });
    const watching = (async () => {
      for await (const { event } of events)
        if (event) seenMs.set(event.externalId, performance.now());
    })().catch(() => {});
    await until(async () => {
      await send();
      await delay(50);
      return seenMs.size > 0;
    });
    const sent: Awaited<ReturnType<typeof send>>[] = [];
    for (let i = 0; i < 200; i++, await delay(10)) sent.push(await send());
    await until(async () => sent.every(({ id }) => seenMs.has(id)));
    ends.abort();
    await watching;
    const shown = sent.map(({ id, startedMs }) => (seenMs.get(id) ?? 0) - startedMs);
    return { many, alone: sent.map(({ tookMs }) => tookMs), shown };
  } finally {
    ends.abort();
    gateway.child.kill("SIGKILL");
    await gateway.exit;
  }
}

function quantile(all: readonly number[], share: number): string {
  const sorted = [...all].sort((a, b) => a - b);
  return `${(sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(1)} ms`;
}
