/**
 * Live updates: what a delivery costs, what an idle watcher costs, and how thousands of watchers
 * fare when payments come at full speed, when a replica dies, and with several replicas on one
 * Redis. The servers are separate processes on one core; watchers and sender run on another. The
 * measure is the processor time of the server's process, from /proc (Linux), compared with minimal
 * servers in the same run. See bench/README.md.
 *
 *     node bench/live.ts [--only=graphql-sse,deep,…] [--watchers=1000,10000] [--events=40]
 *       [--repeats=1] [--unpinned]
 *
 * `deep`, `reconnect`, `replicas` and `accounts` need `redis-server` on the path, and are skipped
 * without it.
 */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Redis } from "ioredis";
import {
  callback,
  callbackPath,
  nextSequence,
  nowUs,
  password,
  Sender,
  written,
} from "./live/callbacks.ts";
import { Crowd } from "./live/crowd.ts";
import { type ProtocolName, protocols, resumingSteps } from "./live/protocols.ts";
import type { Report } from "./live/watchers.ts";
import {
  cpuSeconds,
  directory,
  median,
  memoryKiB,
  type Started,
  start,
  startRedis,
  stop,
  stopAll,
} from "./processes.ts";

const { values: options } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    watchers: { type: "string", default: "" },
    events: { type: "string", default: "40" },
    repeats: { type: "string", default: "1" },
    unpinned: { type: "boolean", default: false },
  },
});

const isPinned =
  !options.unpinned &&
  availableParallelism() >= 2 &&
  spawnSync("taskset", ["-c", "0,1", "true"]).status === 0;
const serverCore = isPinned ? 0 : undefined;
const otherCore = isPinned ? 1 : undefined;
if (isPinned) spawnSync("taskset", ["-a", "-cp", "1", String(process.pid)]);

const asked = options.only === "" ? undefined : new Set(options.only.split(","));
const isAsked = (name: string) => asked?.has(name) ?? true;
const watchersOr = (...sizes: number[]) =>
  options.watchers === "" ? sizes : options.watchers.split(",").map(Number);

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

async function within<T>(ms: number, what: string, promise: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`${what} took more than ${ms} ms`)), ms);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Prints one measurement as a table; nothing without rows. */
function print(title: string, head: readonly string[], rows: readonly (readonly string[])[]): void {
  if (rows.length === 0) return;
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const rule = line(head.map((_, i) => (i === 0 ? "---" : "---:")));
  console.log([`\n${title}\n`, line(head), rule, ...rows.map(line)].join("\n"));
}

const at = (sorted: ArrayLike<number>, share: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
const ms = (us: number) => (us / 1_000).toFixed(us < 100_000 ? 1 : 0);

const free = "127.0.0.1:0";
interface GatewayOptions {
  readonly redisUrl?: string | undefined;
  /** Number of merchant accounts. Default: 1. */
  readonly accounts?: number;
  readonly core?: number | undefined;
}

/** A gateway as in production, but without a connection limit and with an unreachable upstream. */
function startGateway(options: GatewayOptions = {}): Promise<Started> {
  const { redisUrl, accounts = 1, core = serverCore } = options;
  const merchants = join(directory(), "merchants.json");
  const names = Array.from({ length: accounts }, (_, i) => `account-${i}`);
  const account = (name: string) => ({ login: name, password: `${password}-${name}` });
  if (accounts > 1) {
    writeFileSync(merchants, JSON.stringify(Object.fromEntries(names.map((n) => [n, account(n)]))));
  }
  const single = { UPSTREAM_LOGIN: "merchant", UPSTREAM_PASSWORD: password };
  return start(
    "../src/cli.ts",
    ["serve"],
    {
      ...{ PUBLIC_ADDR: free, RPC_ADDR: free, ADMIN_ADDR: free, PUBLIC_URL: "http://127.0.0.1:1" },
      ...(accounts > 1 ? { MERCHANTS_FILE: merchants } : single),
      ...{ UPSTREAM_URL: "http://127.0.0.1:9", AUTH_MODE: "none", NODE_ENV: "production" },
      ...{ WATCH_TOKEN_SECRET: "x".repeat(40), MAX_CONNECTIONS: "0", RECONCILE_AFTER: "0" },
      ...(redisUrl ? { REDIS_URL: redisUrl } : { ALLOW_VOLATILE: "true" }),
      // As in `npm start` and the image.
      NODE_OPTIONS: "--max-semi-space-size=16",
    },
    core,
  );
}

// Fan-out: one event to many watchers.

interface Target {
  readonly start: () => Promise<Started>;
  readonly protocol: ProtocolName;
  readonly path: string;
}

const project = (protocol: ProtocolName): Target => ({
  ...{ start: () => startGateway(), protocol, path: callbackPath },
});
const targets: Readonly<Record<string, Target>> = {
  "raw-sse": {
    start: () => start("live/raw-sse.ts", [], {}, serverCore),
    ...{ protocol: "watch-sse", path: "/publish" },
  },
  "grpc-js": {
    start: () => start("live/grpc-js.ts", [], { NODE_ENV: "production" }, serverCore),
    ...{ protocol: "grpc", path: "/publish" },
  },
  "watch-sse": project("watch-sse"),
  "watch-sse-redis": {
    ...project("watch-sse"),
    async start() {
      const server = await startRedis(otherCore);
      if (!server) throw new Error("watch-sse-redis needs redis-server");
      return startGateway({ redisUrl: server.url });
    },
  },
  "graphql-sse": project("graphql-sse"),
  "graphql-ws": project("graphql-ws"),
  grpc: project("grpc"),
  connect: project("connect"),
};

interface FanOut {
  readonly name: string;
  readonly watchers: number;
  readonly repeat: number;
  readonly cpuPerMillion: number;
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly last: number;
  readonly kibEach: number;
  readonly openingMs: number;
}

async function fanOut(name: string, target: Target, watchers: number): Promise<FanOut> {
  const { child, pid, urls } = await target.start();
  const protocol = protocols[target.protocol];
  const url = urls[protocol.at] ?? "";
  const sender = new Sender(urls.public ?? "", 1);
  let crowd: Crowd | undefined;
  try {
    await sleep(500);
    const before = { kib: memoryKiB(pid, "now"), cpu: cpuSeconds(pid) };
    const steps = protocol.steps("o-1", 1);
    crowd = await Crowd.open({ url, sockets: watchers, steps, core: otherCore });
    await sleep(500);
    const openingCpu = cpuSeconds(pid) - before.cpu;
    const publish = async (limitMs: number) => {
      const sequence = nextSequence();
      const all = (crowd as Crowd).delivered(sequence);
      all.catch(() => {});
      const sentUs = nowUs();
      const body = callback({ externalId: "o-1", sequence, atUs: sentUs });
      await sender.send([written(target.path, body)]);
      return (await within(limitMs, "a delivery", all)) - sentUs;
    };
    // A WebSocket subscription has no start message: wait until every watcher has had an event.
    for (let left = 5; ; left--) {
      const isThere = await publish(10_000).then(
        () => true,
        (error) => {
          if (left === 0) throw error;
        },
      );
      if (isThere) break;
    }
    const events =
      Number(options.events) * Math.min(10, Math.max(1, Math.round(10_000 / watchers)));
    for (let i = 0; i < events / 4; i++) await publish(30_000);
    await sleep(1_000);
    const kib = memoryKiB(pid, "now") - before.kib;
    await crowd.report();
    const since = { cpu: cpuSeconds(pid), ms: performance.now() };
    const last: number[] = [];
    // Stop after 20 s, which is enough to measure.
    while (last.length < events && performance.now() - since.ms < 20_000) {
      last.push(await publish(30_000));
    }
    const seconds = (performance.now() - since.ms) / 1_000;
    const cpu = cpuSeconds(pid) - since.cpu;
    const { latencies } = await crowd.report();
    const deliveries = last.length * watchers;
    if (latencies.length !== deliveries) {
      throw new Error(`${latencies.length} deliveries where ${deliveries} were due`);
    }
    last.sort((a, b) => a - b);
    return {
      ...{ name, watchers, repeat: 0, cpuPerMillion: (cpu / deliveries) * 1e6 },
      ...{ perSecond: deliveries / seconds, p50: at(latencies, 0.5), p99: at(latencies, 0.99) },
      ...{ last: at(last, 0.99), kibEach: kib / watchers },
      openingMs: (openingCpu / watchers) * 1_000,
    };
  } finally {
    sender.close();
    await crowd?.close();
    await stop(child);
  }
}

async function measureFanOut(): Promise<void> {
  const chosen = Object.entries(targets).filter(([name]) => isAsked(name));
  const results: FanOut[] = [];
  for (let repeat = 0; repeat < Number(options.repeats); repeat++) {
    for (const watchers of watchersOr(1_000, 10_000)) {
      for (const [name, target] of chosen.toSorted(() => Math.random() - 0.5)) {
        results.push({ ...(await fanOut(name, target, watchers)), repeat });
        const { cpuPerMillion, p99 } = results.at(-1) as FanOut;
        console.error(`${name}, ${watchers}: ${cpuPerMillion.toFixed(1)} s/M, p99 ${ms(p99)} ms`);
      }
    }
  }
  const sizes = [...new Set(results.map(({ watchers }) => watchers))];
  const rows = sizes.flatMap((watchers) =>
    chosen.map(([name]) => {
      const own = results.filter((one) => one.name === name && one.watchers === watchers);
      const of = (field: Exclude<keyof FanOut, "name">) => median(own.map((one) => one[field]));
      const ratio = (reference: string) => {
        const ratios = own.flatMap(({ repeat, cpuPerMillion }) => {
          const same = results.find(
            (r) => r.name === reference && r.repeat === repeat && r.watchers === watchers,
          );
          return same ? [cpuPerMillion / same.cpuPerMillion] : [];
        });
        return ratios.length > 0 ? median(ratios).toFixed(2) : "–";
      };
      return [
        ...[name, `${watchers}`, of("cpuPerMillion").toFixed(1), ratio("raw-sse")],
        ...[ratio("grpc-js"), of("perSecond").toFixed(0), ms(of("p50")), ms(of("p99"))],
        ...[ms(of("last")), of("kibEach").toFixed(0), of("openingMs").toFixed(2)],
      ];
    }),
  );
  print(
    "One event to so many watchers",
    [
      ...["server", "watchers", "CPU s per million", "÷ raw-sse", "÷ grpc-js", "deliveries/s"],
      ...["p50 ms", "p99 ms", "last watcher, p99 ms", "KiB a watcher", "CPU ms to open one"],
    ],
    rows,
  );
}

// With Redis.

interface RedisUse {
  /** Number of calls by command, including calls in scripts. */
  readonly calls: Readonly<Record<string, number>>;
  readonly cpuSeconds: number;
  readonly bytesOut: number;
  readonly bytesHeld: number;
}

async function useOf(redis: Redis): Promise<RedisUse> {
  const text = await redis.info("everything");
  const number = (name: string) => Number(new RegExp(`^${name}:(\\S+)`, "m").exec(text)?.[1]);
  const calls = [...text.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)];
  return {
    calls: Object.fromEntries(calls.map(([, name = "", count]) => [name, Number(count)])),
    cpuSeconds: number("used_cpu_sys") + number("used_cpu_user"),
    bytesOut: number("total_net_output_bytes"),
    bytesHeld: number("used_memory"),
  };
}

/** The number of open watches, by the gateway's metrics. */
async function watching({ urls }: Started): Promise<number> {
  const text = await (await fetch(`${urls.admin}/metrics`)).text();
  const counts = [...text.matchAll(/^payments_gateway_watchers\{.*\} (\d+)/gm)];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

async function untilWatching(gateway: Started, count: number): Promise<void> {
  const endMs = performance.now() + 60_000;
  for (;;) {
    const begun = await watching(gateway);
    if (begun >= count) return;
    if (performance.now() > endMs) throw new Error(`${begun} of ${count} watches have begun`);
    await sleep(200);
  }
}

/** Counts events that watchers did not receive, and those that were repeated or out of order. */
function faultsOf({ had }: Pick<Report, "had">, due: readonly (readonly number[])[]) {
  let lost = 0;
  let wrong = 0;
  for (const [n, sequences] of due.entries()) {
    const own = had[n] ?? [];
    lost += sequences.filter((sequence) => !own.includes(sequence)).length;
    wrong += own.filter(
      (sequence, i) => own[i - 1] !== undefined && sequence <= own[i - 1]!,
    ).length;
  }
  return { lost, wrong };
}

/** Resolves when watchers have received all due events, or none for ten seconds. */
async function untilDelivered(crowd: Crowd, due: readonly (readonly number[])[]): Promise<Report> {
  const countOf = (lists: readonly (readonly number[])[]) =>
    lists.reduce((sum, list) => sum + list.length, 0);
  let report = await crowd.report();
  let quietSince = performance.now();
  while (countOf(report.had) < countOf(due) && performance.now() - quietSince < 10_000) {
    await sleep(200);
    const { had } = await crowd.report();
    if (countOf(had) > countOf(report.had)) quietSince = performance.now();
    report = { ...report, had };
  }
  return report;
}

/** Resolves when `count` cut watchers are live again, or after 60 s. */
async function untilResumed(crowd: Crowd, count: number): Promise<Report> {
  const endMs = performance.now() + 60_000;
  let { resumedAtUs, refused, ...rest } = await crowd.report();
  while (resumedAtUs.length < count && performance.now() < endMs) {
    await sleep(200);
    const next = await crowd.report();
    resumedAtUs = Float64Array.from([...resumedAtUs, ...next.resumedAtUs]).sort();
    refused += next.refused;
  }
  return { ...rest, resumedAtUs, refused };
}

async function withRedis(
  measure: (url: string, redis: Redis, pid: number) => Promise<void>,
): Promise<void> {
  const server = await startRedis(otherCore);
  if (!server) {
    console.error("left out: there is no redis-server");
    return;
  }
  const redis = new Redis(server.url);
  try {
    await measure(server.url, redis, server.pid);
  } finally {
    redis.disconnect();
  }
}

/** Payments with one watcher each; callbacks are sent as fast as the gateway answers them. */
async function measureDeep(): Promise<void> {
  if (!isAsked("deep")) return;
  const rows: string[][] = [];
  for (const watchers of watchersOr(10_000)) {
    await withRedis(async (redisUrl, redis) => {
      const gateway = await startGateway({ redisUrl });
      const { pid, urls } = gateway;
      const sender = new Sender(urls.public ?? "", 64);
      const callbacks = (prefix: string, count: number) => {
        const due = Array.from({ length: count }, (): number[] => []);
        const requests = (["pending", "success"] as const).flatMap((status) =>
          due.map((sequences, n) => {
            const sequence = nextSequence();
            sequences.push(sequence);
            const of = { externalId: `${prefix}${n}`, paymentId: `${prefix}p${n}` };
            return written(callbackPath, callback({ ...of, sequence, status }));
          }),
        );
        return { due, requests };
      };
      await sender.send(callbacks("warm-", Math.min(watchers, 5_000)).requests);
      const crowd = await Crowd.open({
        ...{ url: urls.public ?? "", sockets: watchers, core: otherCore },
        ...{ steps: resumingSteps("deep-"), resumes: true },
      });
      try {
        await untilWatching(gateway, watchers);
        const { due, requests } = callbacks("deep-", watchers);
        const before = { use: await useOf(redis), cpu: cpuSeconds(pid), ms: performance.now() };
        await sender.send(requests);
        const seconds = (performance.now() - before.ms) / 1_000;
        const report = await untilDelivered(crowd, due);
        const cpu = cpuSeconds(pid) - before.cpu;
        const use = await useOf(redis);
        const { lost, wrong } = faultsOf(report, due);
        rows.push([
          ...[`${watchers}`, (requests.length / seconds).toFixed(0)],
          ((cpu / requests.length) * 1e6).toFixed(0),
          (requests.length / cpu).toFixed(0),
          (((use.cpuSeconds - before.use.cpuSeconds) / requests.length) * 1e6).toFixed(0),
          ((use.bytesHeld - before.use.bytesHeld) / requests.length).toFixed(0),
          ...[`${lost}`, `${wrong}`],
        ]);
      } finally {
        sender.close();
        await crowd.close();
        await stop(gateway.child);
      }
    });
  }
  print(
    "Deep: a watcher each, callbacks at full speed, Redis",
    [
      ...["payments", "callbacks/s", "CPU µs each", "a core's worth/s", "Redis CPU µs each"],
      ...["Redis bytes each", "lost", "repeated or out of order"],
    ],
    rows,
  );
}

/** Most files that a process may open on this system. */
const openFiles = Number(spawnSync("sh", ["-c", "ulimit -Hn"]).stdout);

async function measureIdle(): Promise<void> {
  if (!isAsked("idle")) return;
  const rows: string[][] = [];
  for (const watchers of watchersOr(50_000)) {
    const gateway = await startGateway();
    const { pid, urls } = gateway;
    // Watchers beyond the limit of open files are HTTP/2 streams, a hundred to a connection.
    const sockets = Math.min(watchers, Math.max(openFiles - 3_000, 0));
    const streams = Math.ceil((watchers - sockets) / 100) * 100;
    const crowds: Crowd[] = [];
    let worstMs = 0;
    let isOver = false;
    const health = (async () => {
      while (!isOver) {
        const beganMs = performance.now();
        const { status } = await fetch(`${urls.admin}/healthz`);
        if (status !== 200) throw new Error(`/healthz answered ${status}`);
        worstMs = Math.max(worstMs, performance.now() - beganMs);
        await sleep(50);
      }
    })();
    try {
      await sleep(500);
      const before = { kib: memoryKiB(pid, "now"), cpu: cpuSeconds(pid), ms: performance.now() };
      const steps = protocols["watch-sse"].steps("o-1", 1);
      const url = urls.public ?? "";
      crowds.push(await Crowd.open({ url, sockets, steps, core: otherCore }));
      if (streams > 0) {
        const rpc = { url: urls.rpc ?? "", sockets: streams / 100, streams: 100, atOnce: 4 };
        const steps = protocols.grpc.steps("o-1", 100);
        crowds.push(await Crowd.open({ ...rpc, steps, core: otherCore }));
      }
      await untilWatching(gateway, watchers);
      const opening = {
        ...{ cpu: cpuSeconds(pid) - before.cpu, seconds: (performance.now() - before.ms) / 1_000 },
        worstMs,
      };
      await sleep(5_000);
      worstMs = 0;
      const idle = { cpu: cpuSeconds(pid), ms: performance.now() };
      // Longer than the heartbeat interval.
      await sleep(20_000);
      const share = (cpuSeconds(pid) - idle.cpu) / ((performance.now() - idle.ms) / 1_000);
      const kib = memoryKiB(pid, "now");
      const reports = await Promise.all(crowds.map((crowd) => crowd.report()));
      const cut = reports.reduce((sum, report) => sum + report.cut + report.refused, 0);
      rows.push([
        ...[`${sockets}`, `${streams}`, (kib / 1024).toFixed(0)],
        ...[(memoryKiB(pid, "peak") / 1024).toFixed(0), ((kib - before.kib) / watchers).toFixed(1)],
        ...[((opening.cpu / watchers) * 1_000).toFixed(2), opening.seconds.toFixed(1)],
        ...[opening.worstMs.toFixed(0), worstMs.toFixed(0), `${(share * 100).toFixed(1)}%`],
        `${cut}`,
      ]);
    } finally {
      isOver = true;
      await health.catch(() => {});
      for (const crowd of crowds) await crowd.close();
      await stop(gateway.child);
    }
  }
  print(
    "Idle watchers in one process",
    [
      ...["by SSE", "by gRPC", "MiB", "peak MiB", "KiB each", "CPU ms to open one", "opened in s"],
      ...["/healthz meanwhile, worst ms", "while idle", "core used while idle", "cut"],
    ],
    rows,
  );
}

/** A replica is killed, and all its watchers reconnect to another one at once. */
async function measureReconnect(): Promise<void> {
  if (!isAsked("reconnect")) return;
  const rows: string[][] = [];
  for (const watchers of watchersOr(10_000)) {
    await withRedis(async (redisUrl, redis) => {
      const dying = await startGateway({ redisUrl });
      const gateway = await startGateway({ redisUrl });
      const sender = new Sender(gateway.urls.public ?? "", 64);
      const due = Array.from({ length: watchers }, (): number[] => []);
      const send = async (some: readonly number[][]) => {
        const requests = some.map((sequences) => {
          const sequence = nextSequence();
          sequences.push(sequence);
          const externalId = `back-${due.indexOf(sequences)}`;
          return written(callbackPath, callback({ externalId, sequence }));
        });
        await sender.send(requests);
      };
      const crowd = await Crowd.open({
        ...{ url: dying.urls.public ?? "", sockets: watchers, core: otherCore },
        ...{ steps: resumingSteps("back-"), resumes: true },
      });
      try {
        await untilWatching(dying, watchers);
        await send(due);
        await untilDelivered(crowd, due);
        crowd.moveTo(gateway.urls.public ?? "");
        const before = { use: await useOf(redis), cpu: cpuSeconds(gateway.pid), us: nowUs() };
        dying.child.kill("SIGKILL");
        // Events that are stored while the watchers are disconnected.
        await send(due.slice(0, Math.ceil(watchers / 10)));
        await untilWatching(gateway, watchers);
        const cpu = cpuSeconds(gateway.pid) - before.cpu;
        const use = await useOf(redis);
        const report = await untilResumed(crowd, watchers);
        await send(due);
        const { had } = await untilDelivered(crowd, due);
        const { lost, wrong } = faultsOf({ had }, due);
        const back = report.resumedAtUs.map((us) => us - before.us);
        const scripts = (use.calls.evalsha ?? 0) - (before.use.calls.evalsha ?? 0);
        rows.push([
          ...[`${watchers}`, ms(at(back, 0.5)), ms(at(back, 0.99)), ms(at(back, 1))],
          ...[`${back.length}`, `${report.refused}`, `${lost}`, `${wrong}`],
          ...[((cpu / watchers) * 1_000).toFixed(2), (scripts / watchers).toFixed(2)],
          (((use.cpuSeconds - before.use.cpuSeconds) / watchers) * 1e6).toFixed(0),
        ]);
      } finally {
        sender.close();
        await crowd.close();
        await stop(gateway.child);
        await stop(dying.child);
      }
    });
  }
  print(
    "Reconnect: a replica is killed, its watchers come to another one with their cursors",
    [
      ...["watchers", "half are back, ms", "99%", "all", "came back", "refused meanwhile", "lost"],
      ...["repeated or out of order", "CPU ms each", "Redis scripts each", "Redis CPU µs each"],
    ],
    rows,
  );
}

/** How often each of four replicas reads an event from Redis, by the number of watchers. */
async function measureReplicas(): Promise<void> {
  if (!isAsked("replicas")) return;
  const rows: string[][] = [];
  const ways: readonly ProtocolName[] = ["graphql-sse", "graphql-ws", "watch-sse", "grpc"];
  for (const watchers of watchersOr(4, 10_000)) {
    await withRedis(async (redisUrl, redis) => {
      const gateways: Started[] = [];
      for (let i = 0; i < 4; i++) gateways.push(await startGateway({ redisUrl }));
      const sender = new Sender(gateways[0]?.urls.public ?? "", 1);
      const crowds: Crowd[] = [];
      try {
        for (const gateway of gateways) {
          for (const name of ways) {
            const { at, steps } = protocols[name];
            const url = gateway.urls[at] ?? "";
            const sockets = Math.ceil(watchers / ways.length);
            const of = { url, sockets, steps: steps("o-1", 1), core: otherCore };
            crowds.push(await Crowd.open(of));
          }
          await untilWatching(gateway, watchers);
        }
        const publish = async () => {
          const sequence = nextSequence();
          const all = Promise.all(crowds.map((crowd) => crowd.delivered(sequence)));
          const sentUs = nowUs();
          const body = callback({ externalId: "o-1", sequence, atUs: sentUs });
          await sender.send([written(callbackPath, body)]);
          return Math.max(...(await within(60_000, "a delivery", all))) - sentUs;
        };
        for (let i = 0; i < 3; i++) await publish();
        const cpu = () => gateways.reduce((sum, { pid }) => sum + cpuSeconds(pid), 0);
        const before = { use: await useOf(redis), cpu: cpu() };
        const last: number[] = [];
        for (let i = 0; i < Number(options.events); i++) last.push(await publish());
        const use = await useOf(redis);
        const spent = (cpu() - before.cpu) / (last.length * watchers * gateways.length);
        const per = (name: string) =>
          ((use.calls[name] ?? 0) - (before.use.calls[name] ?? 0)) / last.length;
        rows.push([
          ...[`${gateways.length} × ${watchers}`, per("evalsha").toFixed(1)],
          // One of the scripts stores the event; the rest are reads.
          ((per("evalsha") - 1) / gateways.length).toFixed(2),
          ((use.bytesOut - before.use.bytesOut) / last.length / 1_024).toFixed(1),
          (((use.cpuSeconds - before.use.cpuSeconds) / last.length) * 1e6).toFixed(0),
          ...[
            (spent * 1e6).toFixed(1),
            ms(
              at(
                last.toSorted((a, b) => a - b),
                0.99,
              ),
            ),
          ],
        ]);
      } finally {
        sender.close();
        for (const crowd of crowds) await crowd.close();
        for (const { child } of gateways) await stop(child);
      }
    });
  }
  print(
    "Replicas: one event to the watchers of all, from one Redis",
    [
      ...["replicas × watchers", "scripts an event", "reads a replica"],
      ...["KiB from Redis", "Redis CPU µs", "CPU s per million deliveries", "last watcher, p99 ms"],
    ],
    rows,
  );
}

/** The cost of one watcher in each of many accounts while there are no events. */
async function measureAccounts(): Promise<void> {
  if (!isAsked("accounts")) return;
  const rows: string[][] = [];
  for (const accounts of watchersOr(10, 1_000)) {
    await withRedis(async (redisUrl, redis) => {
      const gateway = await startGateway({ redisUrl, accounts });
      const headers = { "x-merchant-account": "account-{n}" };
      const crowd = await Crowd.open({
        ...{ url: gateway.urls.public ?? "", sockets: accounts, core: otherCore },
        ...{ steps: resumingSteps("o-", headers), resumes: true },
      });
      try {
        await untilWatching(gateway, accounts);
        await sleep(2_000);
        const cpu = cpuSeconds(gateway.pid);
        const before = { use: await useOf(redis), ms: performance.now() };
        await sleep(15_000);
        const use = await useOf(redis);
        const seconds = (performance.now() - before.ms) / 1_000;
        const scripts = (use.calls.evalsha ?? 0) - (before.use.calls.evalsha ?? 0);
        const redisCpu = use.cpuSeconds - before.use.cpuSeconds;
        rows.push([
          ...[`${accounts}`, (scripts / seconds).toFixed(0)],
          `${((redisCpu / seconds) * 100).toFixed(1)}%`,
          `${(((cpuSeconds(gateway.pid) - cpu) / seconds) * 100).toFixed(1)}%`,
        ]);
      } finally {
        await crowd.close();
        await stop(gateway.child);
      }
    });
  }
  print(
    "Accounts: one replica with a watcher in each, at rest",
    ["accounts", "Redis scripts/s", "Redis core used", "gateway core used"],
    rows,
  );
}

try {
  await measureFanOut();
  await measureDeep();
  await measureIdle();
  await measureReconnect();
  await measureReplicas();
  await measureAccounts();
} finally {
  await stopAll();
}
