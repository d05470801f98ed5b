/**
 * Turns at the rate budget in real time: two callers, one with 2.5 times the limit and 100 times
 * the calls of the other, at three gateways that share one Redis. The payments service behind them
 * rejects all calls beyond its limit in any second. A wait is the duration of a call less the
 * service's time, so it includes the work of the gateway and of this process.
 *
 *   node bench/turns.ts [seconds] [limit …]
 */
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { Agent, createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePorts, spawnCli } from "../test/gateway/spawn.ts";
import { jainOf } from "../test/ratelimit/load-rig.ts";
import { slidingWindowUpstream } from "../test/ratelimit/modelled-upstream.ts";
import { directory, startRedis, stopAll } from "./processes.ts";

const [seconds = 60, ...limits] = process.argv.slice(2).map(Number);
const replicas = 3;
const warmUpMs = 3_000;
/** How long the service takes to answer a request. */
const serviceMs = 10;

const redis = await startRedis();
if (!redis) throw new Error("redis-server is not installed");
const keys = { large: newKey(), small: newKey() };
const keysFile = join(directory(), "keys.json");
writeFileSync(
  keysFile,
  JSON.stringify(
    Object.entries(keys).map(([name, key]) => ({
      name,
      sha256: createHash("sha256").update(key).digest("hex"),
      scopes: ["operations:read"],
    })),
  ),
);
const agent = new Agent({ keepAlive: true });
try {
  console.log(
    "| limit | turns | 99% of the small caller's calls waited at most | median | two turns | Jain's index | budget used | rejected by the service | refused of the small caller's |",
  );
  console.log("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
  for (const limit of limits.length > 0 ? limits : [50]) {
    for (const turns of [true, false]) console.log(await measure(limit, turns));
  }
} finally {
  agent.destroy();
  await stopAll();
}

function newKey(): string {
  return randomBytes(24).toString("base64url");
}

/** @param turns false: both callers use one key, so that they count as one caller */
async function measure(limit: number, turns: boolean): Promise<string> {
  const service = await startService(limit);
  const gateways = Array.from({ length: replicas }, () =>
    spawnCli(["serve"], {
      ...freePorts,
      UPSTREAM_URL: service.url,
      UPSTREAM_LOGIN: "shop",
      UPSTREAM_PASSWORD: "password",
      PUBLIC_URL: "http://127.0.0.1:1",
      AUTH_MODE: "keys",
      API_KEYS_FILE: keysFile,
      REDIS_URL: redis?.url ?? "",
      REDIS_PREFIX: `turns-${limit}-${turns}`,
      RATE_LIMIT_INITIAL: `${limit}`,
      RECONCILE_AFTER: "0",
      LOG_LEVEL: "warn",
    }),
  );
  try {
    const addresses = await Promise.all(gateways.map(async ({ ready }) => (await ready).rpc ?? ""));
    const startedMs = performance.now();
    const endsMs = startedMs + warmUpMs + seconds * 1_000;
    const counts = () => performance.now() >= startedMs + warmUpMs;
    service.count(counts);
    const load = (key: string, perSecond: number) =>
      offer({ addresses, key, perSecond, endsMs, counts });
    const [large, small] = await Promise.all([
      load(keys.large, 2.5 * limit),
      load(turns ? keys.small : keys.large, limit / 40),
    ]);
    const waits = small.waits.toSorted((a, b) => a - b);
    const at = (share: number) => waits[Math.ceil(waits.length * share) - 1] ?? Number.NaN;
    // In a turn, both callers get a token; a replica asks Redis for one at most every 5 ms.
    const twoTurnsMs = 4 * Math.max(1_050 / limit, 5);
    const { sent, rejected } = service.counted;
    const cells = [
      `${limit} a second`,
      turns ? "on" : "off",
      `${at(0.99).toFixed(0)} ms`,
      `${at(0.5).toFixed(0)} ms`,
      `${twoTurnsMs.toFixed(0)} ms`,
      jainOf([large, small]).toFixed(2),
      `${((100 * sent) / (seconds * limit)).toFixed(1)}%`,
      `${rejected} of ${sent}`,
      `${small.refused} of ${small.offered}`,
    ];
    return `| ${cells.join(" | ")} |`;
  } finally {
    for (const { child } of gateways) child.kill();
    await Promise.all(gateways.map(({ exit }) => exit));
    service.close();
  }
}

/** A service that answers reads after `serviceMs`, with 429 beyond its limit in any second. */
async function startService(limit: number) {
  const upstream = slidingWindowUpstream(limit);
  const counted = { sent: 0, rejected: 0 };
  let counts = () => false;
  const server = createServer((asked, answer) => {
    asked.resume();
    const { accepted, headers } = upstream.request(performance.now());
    if (counts()) {
      counted.sent++;
      if (!accepted) counted.rejected++;
    }
    for (const name of ["limit", "remaining", "reset"] as const) {
      answer.setHeader(`x-ratelimit-${name}`, String(headers[name]));
    }
    answer.setHeader("content-type", "application/json");
    answer.statusCode = accepted ? 200 : 429;
    setTimeout(
      () => answer.end(accepted ? '{"id":"1"}' : '{"code":"too_many_requests"}'),
      serviceMs,
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    counted,
    count(when: () => boolean) {
      counts = when;
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

interface Load {
  readonly addresses: readonly string[];
  readonly key: string;
  readonly perSecond: number;
  readonly endsMs: number;
  readonly counts: () => boolean;
}

/** Sends calls at random times to random gateways, without waiting for earlier calls. */
async function offer({ addresses, key, perSecond, endsMs, counts }: Load) {
  const figures = { offered: 0, granted: 0, refused: 0, waits: [] as number[] };
  const calls = new Set<Promise<void>>();
  let nth = 0;
  for (let nextMs = performance.now(); nextMs < endsMs; ) {
    await delay(Math.max(0, nextMs - performance.now()));
    const one = call(nth++).finally(() => calls.delete(one));
    calls.add(one);
    nextMs += (-Math.log(1 - Math.random()) * 1_000) / perSecond;
  }
  const counted = { ...figures, waits: [...figures.waits] };
  await Promise.all(calls);
  return counted;

  async function call(id: number): Promise<void> {
    const counted = counts();
    if (counted) figures.offered++;
    const startedMs = performance.now();
    const address = addresses[Math.floor(Math.random() * addresses.length)] ?? "";
    const status = await ask(address, key, `${perSecond}-${id}`);
    if (!counted) return;
    if (status !== 200) {
      figures.refused++;
      return;
    }
    figures.granted++;
    figures.waits.push(performance.now() - startedMs - serviceMs);
  }
}

async function ask(address: string, key: string, id: string): Promise<number> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const asked = request(`${address}/payments.v1.OperationService/GetOperation`, {
    ...{ agent, headers, method: "POST" },
  });
  asked.end(JSON.stringify({ external_id: id, operation_id: id }));
  const [answer] = await once(asked, "response");
  answer.resume();
  await once(answer, "end");
  return answer.statusCode;
}
