/**
 * What one call through the gateway costs, as a multiple of what a bare Node proxy costs: processor
 * seconds of the server's process, from /proc (Linux), with so many calls in flight. Everything is on:
 * API key, validation, metrics, the access log, intents, the event log, the mirrored budget. All
 * servers run at once and are measured in turns. A ratio compares measurements of the same round,
 * so that a noisy machine affects both equally. All are warmed first, since V8 goes on to compile for
 * the first 20,000 calls. See bench/README.md.
 *
 *     node bench/calls.ts [--only=connect-json,graphql] [--rounds=3] [--seconds=3] [--warm=20]
 *                         [--in-flight=64] [--against=../former]
 *
 * Rows on Redis need `redis-server` on the path; they are left out without it. With `--against`, each
 * row is measured with the gateway of another checkout, too, in the same rounds.
 *
 *     node bench/calls.ts --soak=<memory|redis|data-dir> [--minutes=30] [--rate=1500]
 *
 * sends so many mixed calls a second to a gateway with an old space of 200 MiB instead, and prints
 * its memory and the latencies of each minute.
 */
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import http2 from "node:http2";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { create, toBinary } from "@bufbuild/protobuf";
import { Pool } from "undici";
import { GetOperationRequestSchema } from "../src/gen/payments/v1/operation_service_pb.ts";
import { sign } from "../src/wire/signature.ts";
import {
  cpuSeconds,
  directory,
  median,
  memoryKiB,
  start,
  startRedis,
  stopAll,
} from "./processes.ts";

const { values: options } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    rounds: { type: "string", default: "3" },
    seconds: { type: "string", default: "3" },
    warm: { type: "string", default: "20" },
    "in-flight": { type: "string", default: "64" },
    against: { type: "string" },
    soak: { type: "string" },
    minutes: { type: "string", default: "30" },
    rate: { type: "string", default: "1500" },
  },
});
const inFlight = Number(options["in-flight"]);
const key = "bench-key-0123456789-abcdefghijklmnopqrstuvwxyz";
const password = "secret";

/** A kind of request. Calls to the service have new ids: identical reads in flight are shared. */
interface Call {
  readonly at: "public" | "rpc" | "proxy";
  readonly path: (id: string) => string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: (id: string) => string | Uint8Array;
  readonly signed?: boolean;
  readonly http2?: boolean;
}

const json = { "content-type": "application/json" };
const rpc = { at: "rpc", headers: { ...json, "connect-protocol-version": "1" } } as const;
const operationPath = "/payments.v1.OperationService/GetOperation";
const operationBytes = (id: string) =>
  toBinary(
    GetOperationRequestSchema,
    create(GetOperationRequestSchema, { externalId: "o-1", operationId: id }),
  );
const method = { cc: { number: "4111111111111111", cvv: "123", expMonth: 12, expYear: 2031 } };
const payment = { amount: "10.10", currency: "UAH", customer: { email: "jo@example.com" } };
const graphql = (query: string, variables: (id: string) => object): Call => ({
  ...{ at: "public", path: () => "/graphql", headers: json },
  body: (id) => JSON.stringify({ query, variables: variables(id) }),
});
const connectJson: Call = {
  ...{ ...rpc, path: () => operationPath },
  body: (operationId) => JSON.stringify({ externalId: "o-1", operationId }),
};
const createPayment: Call = {
  ...rpc,
  path: () => "/payments.v1.PaymentService/CreatePayment",
  body: (externalId) =>
    JSON.stringify({
      ...{ ...payment, externalId, mode: "PAYMENT_MODE_DIRECT", paymentMethod: method },
    }),
};
const requestPayout: Call = {
  ...rpc,
  path: () => "/payments.v1.PayoutService/RequestPayout",
  body: (externalId) =>
    JSON.stringify({
      order: { externalId, currency: "UAH", description: "a prize", originalAmount: "10.10" },
      ...{ payer: { entityId: "p-1" }, payoutType: "card" },
      recipient: { card: { firstName: "Jo", lastName: "Lee", cardData: { token: "t-1" } } },
    }),
};
const callback: Call = {
  ...{ at: "public", path: () => "/callbacks/default/payments", headers: json, signed: true },
  body: (id) =>
    JSON.stringify({
      ...{ id, external_id: id, is_success: true, operation: "payment" },
      details: { payment_id: id, status: "success", amount: "10.10", currency: "UAH" },
      customer: { email: "jo@example.com", first_name: "Jo", last_name: "Lee" },
      payment_method: { type: "card", cc_token: { mask: "411111******1111", token: "t" } },
    }),
};
/** A payment whose state a callback reports before the measurement. */
const known = "o-known";

const calls: Readonly<Record<string, Call>> = {
  proxy: { at: "proxy", path: (id) => `/info/operation?external_id=o-1&operation_id=${id}` },
  graphql: graphql(
    `query ($e: ID!, $o: ID!) { operation(externalId: $e, operationId: $o) { externalId statusCode
      createdAt action { type value } details { amount currency rrn } } }`,
    (id) => ({ e: "o-1", o: id }),
  ),
  "connect-json": connectJson,
  // Every call is traced, or one of ten; the metrics of a traced call have exemplars.
  "connect-json-traced": connectJson,
  "connect-json-tenth-traced": connectJson,
  "connect-proto": {
    ...{ at: "rpc", path: () => operationPath, body: operationBytes },
    headers: { "content-type": "application/proto", "connect-protocol-version": "1" },
  },
  grpc: {
    ...{ at: "rpc", path: () => operationPath, http2: true },
    headers: { "content-type": "application/grpc", te: "trailers" },
    body(id) {
      const message = operationBytes(id);
      const head = Buffer.alloc(5);
      head.writeUInt32BE(message.length, 1);
      return Buffer.concat([head, message]);
    },
  },
  "create-connect": createPayment,
  "create-graphql": graphql(
    `mutation ($i: CreatePaymentInput!) { createPayment(input: $i) { __typename
      ... on Payment { externalId isSuccess details { amount currency status paymentId } } } }`,
    (externalId) => ({
      i: { ...payment, externalId, mode: "DIRECT", paymentMethod: { method } },
    }),
  ),
  "create-connect-redis": createPayment,
  // Two processes, to which callers go by turns.
  "create-connect-redis-two": createPayment,
  "create-connect-dir": createPayment,
  "create-connect-traced": createPayment,
  "payout-connect": requestPayout,
  "state-connect": {
    ...{ ...rpc, path: () => "/payments.v1.PaymentService/GetPayment" },
    body: () => JSON.stringify({ externalId: known }),
  },
  "state-graphql": graphql(
    `query ($e: ID!) { payment(externalId: $e) { externalId isSuccess
      details { amount currency status paymentId } } }`,
    () => ({ e: known }),
  ),
  callback,
  "callback-redis": callback,
  "callback-dir": callback,
};

async function startGateway(
  upstream: string,
  store: NodeJS.ProcessEnv,
  { nodeOptions = "", checkout = ".." } = {},
) {
  const free = "127.0.0.1:0";
  const keys = join(directory(), "api-keys.json");
  const scopes = ["payments:write", "payments:read", "payouts:write", "operations:read"];
  const sha256 = createHash("sha256").update(key).digest("hex");
  writeFileSync(keys, JSON.stringify([{ name: "bench", sha256, scopes }]));
  return start(join(checkout, "src/cli.ts"), ["serve"], {
    ...{ PUBLIC_ADDR: free, RPC_ADDR: free, ADMIN_ADDR: free, PUBLIC_URL: "http://127.0.0.1:1" },
    ...{ UPSTREAM_URL: upstream, UPSTREAM_LOGIN: "merchant", UPSTREAM_PASSWORD: password },
    ...{ AUTH_MODE: "keys", API_KEYS_FILE: keys, WATCH_TOKEN_SECRET: "x".repeat(40) },
    ...{ RATE_LIMIT_INITIAL: "100000", NODE_ENV: "production" },
    // As in `npm start` and the image.
    NODE_OPTIONS: `--max-semi-space-size=16 ${nodeOptions}`,
    ...store,
  });
}

/** Settings of a row whose calls are traced. The service's stand-in takes the spans, too. */
const traced = (name: string, collector: string): NodeJS.ProcessEnv => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: collector,
  OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
  OTEL_TRACES_SAMPLER_ARG: name.includes("tenth") ? "0.1" : "1",
});

let counter = 0;
/** All ids have one length, so that all rounds send equally long requests. */
const nextId = () => `b-${process.pid}-${String(++counter).padStart(9, "0")}`;

/** Sends one call. Rejects for any answer but a success. */
type Send = () => Promise<void>;

function senderOf(call: Call, url: string): { readonly send: Send; close(): void } {
  const authorization = { authorization: `Bearer ${key}` };
  if (call.http2) {
    const sessions = Array.from({ length: Math.ceil(inFlight / 8) }, () => http2.connect(url));
    let turn = 0;
    return {
      close() {
        for (const session of sessions) session.close();
      },
      send: () =>
        new Promise((resolve, reject) => {
          const session = sessions[turn++ % sessions.length];
          const stream = session?.request({
            ...{ ":method": "POST", ":path": call.path("") },
            ...{ ...authorization, ...call.headers },
          });
          stream?.on("trailers", (trailers) => {
            if (trailers["grpc-status"] !== "0") reject(new Error(JSON.stringify(trailers)));
          });
          stream?.on("error", reject);
          stream?.on("close", resolve);
          stream?.resume().end(call.body?.(nextId()));
        }),
    };
  }
  const pool = new Pool(url, { connections: inFlight, pipelining: 1 });
  return {
    close: () => void pool.close(),
    async send() {
      const id = nextId();
      const body = call.body?.(id) ?? null;
      const { statusCode, body: answer } = await pool.request({
        method: body === null ? "GET" : "POST",
        path: call.path(id),
        headers: {
          ...call.headers,
          ...(call.signed && { "x-service-signature": sign(Buffer.from(body ?? ""), password) }),
          ...(call.at !== "proxy" && !call.signed && authorization),
        },
        body,
      });
      const text = await answer.text();
      if (statusCode !== 200 || text.includes('"errors"')) throw new Error(`${statusCode} ${text}`);
    },
  };
}

interface Slice {
  readonly cpuPer10k: number;
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly refused: number;
}

async function load(send: Send, pids: readonly number[], seconds: number): Promise<Slice> {
  const latencies: number[] = [];
  let refused = 0;
  const cpu = () => pids.reduce((sum, pid) => sum + cpuSeconds(pid), 0);
  const before = cpu();
  const endMs = performance.now() + seconds * 1_000;
  const one = async () => {
    while (performance.now() < endMs) {
      const startMs = performance.now();
      try {
        await send();
        latencies.push(performance.now() - startMs);
      } catch (error) {
        refused += 1;
        if (refused === 1) console.error(String(error).slice(0, 300));
      }
    }
  };
  await Promise.all(Array.from({ length: inFlight }, one));
  latencies.sort((a, b) => a - b);
  const at = (share: number) => latencies[Math.floor(latencies.length * share)] ?? Number.NaN;
  return {
    cpuPer10k: ((cpu() - before) / latencies.length) * 10_000,
    perSecond: latencies.length / seconds,
    ...{ p50: at(0.5), p99: at(0.99), refused },
  };
}

/** A row, and what it runs on. */
interface Running {
  readonly pids: readonly number[];
  readonly send: Send;
  close(): void;
  readonly slices: Slice[];
}

async function measure(): Promise<void> {
  const upstream = (await start("calls/upstream.ts", [])).urls.upstream ?? "";
  const redisUrl = (await startRedis())?.url;
  const asked = new Set(options.only ? ["proxy", ...options.only.split(",")] : Object.keys(calls));
  const running = new Map<string, Running>();
  const former = options.against === undefined ? [] : [resolve(options.against)];
  const rows = Object.entries(calls).flatMap(([name, call]) =>
    ["..", ...(call.at === "proxy" ? [] : former)].map((checkout) => ({ name, call, checkout })),
  );
  for (const { name, call, checkout } of rows) {
    const isFormer = checkout !== "..";
    const row = isFormer ? `${name}, former` : name;
    const [onRedis, onDisk] = [name.includes("-redis"), name.endsWith("-dir")];
    if (!asked.has(name) || (onRedis && redisUrl === undefined)) continue;
    const store = onRedis
      ? { REDIS_URL: redisUrl, REDIS_PREFIX: isFormer ? "former" : "bench" }
      : onDisk
        ? { DATA_DIR: join(directory(), row) }
        : { ALLOW_VOLATILE: "true", ...(name.endsWith("-traced") && traced(name, upstream)) };
    const begin = () =>
      call.at === "proxy"
        ? start("calls/proxy.ts", [upstream])
        : startGateway(upstream, store, { checkout });
    const servers = [await begin(), ...(name.endsWith("-two") ? [await begin()] : [])];
    const url = (at: Call["at"]) => servers.map(({ urls }) => urls[at] ?? "");
    if (name.startsWith("state-")) {
      const told = { ...callback, body: () => callback.body?.(known) ?? "" };
      const { send, close } = senderOf(told, url("public")[0] ?? "");
      await send();
      close();
    }
    const senders = url(call.at).map((one) => senderOf(call, one));
    let turn = 0;
    running.set(row, {
      pids: servers.map(({ pid }) => pid),
      send: () => (senders[turn++ % senders.length] as (typeof senders)[0]).send(),
      close: () => senders.forEach(({ close }) => void close()),
      slices: [],
    });
  }
  for (const { send, pids } of running.values()) await load(send, pids, Number(options.warm));
  for (let round = 1; round <= Number(options.rounds); round++) {
    const shuffled = [...running.values()].toSorted(() => Math.random() - 0.5);
    for (const { send, pids, slices } of shuffled) {
      await load(send, pids, 1);
      slices.push(await load(send, pids, Number(options.seconds)));
    }
    console.error(`round ${round} of ${options.rounds}`);
  }
  const reference = running.get("proxy")?.slices ?? [];
  console.log(
    "| call | ÷ bare proxy | CPU s/10k | calls/s | p50 ms | p99 ms | peak MiB | refused |",
  );
  console.log("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
  for (const [name, { pids, slices, close }] of running) {
    const ratios = slices.map(({ cpuPer10k }, at) => cpuPer10k / (reference[at]?.cpuPer10k ?? 0));
    const of = (field: keyof Slice) => median(slices.map((slice) => slice[field]));
    const refused = slices.reduce((sum, slice) => sum + slice.refused, 0);
    const cells = [
      ...[name, median(ratios).toFixed(2), of("cpuPer10k").toFixed(2)],
      ...[of("perSecond").toFixed(0), of("p50").toFixed(1), of("p99").toFixed(1)],
      ...[(Math.max(...pids.map((pid) => memoryKiB(pid, "peak"))) / 1024).toFixed(0), refused],
    ];
    console.log(`| ${cells.join(" | ")} |`);
    close();
  }
}

/** Sends mixed calls at a fixed rate, whether or not earlier ones are answered. */
async function soak(kind: string): Promise<void> {
  const upstream = (await start("calls/upstream.ts", [])).urls.upstream ?? "";
  const stores: Readonly<Record<string, NodeJS.ProcessEnv>> = {
    memory: { ALLOW_VOLATILE: "true" },
    redis: { REDIS_URL: kind === "redis" ? (await startRedis())?.url : undefined },
    "data-dir": { DATA_DIR: join(directory(), "data") },
  };
  const store = stores[kind];
  if (!store) throw new Error(`--soak is one of ${Object.keys(stores).join(", ")}`);
  const { pid, urls } = await startGateway(upstream, store, {
    nodeOptions: "--max-old-space-size=200",
  });
  // A callback for every payment, and two reads.
  const mix = ["create-connect", "callback", "connect-json", "state-connect"] as const;
  const senders = mix.map((name) => {
    const call = calls[name] as Call;
    return senderOf(call, urls[call.at] ?? "").send;
  });
  const told = { ...callback, body: () => callback.body?.(known) ?? "" };
  await senderOf(told, urls.public ?? "").send();
  console.log("| minute | MiB now | peak MiB | answered a second | p50 ms | p99 ms | refused |");
  console.log("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
  const perTick = Number(options.rate) / 100;
  for (let minute = 1; minute <= Number(options.minutes); minute++) {
    const latencies: number[] = [];
    let [refused, owed, sent] = [0, 0, 0];
    const endMs = performance.now() + 60_000;
    while (performance.now() < endMs) {
      for (owed += perTick; owed >= 1; owed--) {
        const startMs = performance.now();
        (senders[sent++ % senders.length] as Send)().then(
          () => void latencies.push(performance.now() - startMs),
          () => void refused++,
        );
      }
      await delay(10);
    }
    latencies.sort((a, b) => a - b);
    const at = (share: number) => (latencies[Math.floor(latencies.length * share)] ?? 0).toFixed(1);
    const memory = (["now", "peak"] as const).map((one) => (memoryKiB(pid, one) / 1024).toFixed(0));
    const perSecond = (latencies.length / 60).toFixed(0);
    console.log(`| ${[minute, ...memory, perSecond, at(0.5), at(0.99), refused].join(" | ")} |`);
  }
}

try {
  await (options.soak === undefined ? measure() : soak(options.soak));
} finally {
  await stopAll();
}
