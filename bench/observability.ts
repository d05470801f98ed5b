/**
 * What metrics and traces cost a call, in microseconds of this process's CPU time, with all
 * variants in turns in one run: a read at the RPC edge (bare, with metrics, traced), then a payment
 * through the whole gateway (untraced, a tenth of calls traced, all traced; the collector is a
 * separate process). Client and stubs run in the measured process, so only the differences are
 * meaningful. Run: `node bench/observability.ts`.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { Agent, createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { create } from "@bufbuild/protobuf";
import { pino } from "pino";
import { scopes } from "../src/auth/caller.ts";
import { readConfig } from "../src/config/config.ts";
import type { Core } from "../src/core/core.ts";
import { GetPaymentResponseSchema } from "../src/gen/payments/v1/payment_service_pb.ts";
import { noReport } from "../src/report.ts";
import { createRpcServer, type RpcServerOptions } from "../src/rpc/server.ts";
import { createTracing } from "../src/telemetry/load-sdk.ts";
import { createTelemetry } from "../src/telemetry/telemetry.ts";
import { startTestGateway } from "../test/start.ts";

const ROUNDS = 10;
const CALLS = 1_000;
const AT_ONCE = 16;
const log = pino({ level: "silent" });

if (process.argv[2] === "collector") {
  const collector = createServer((asked, answer) => {
    asked.resume().once("end", () => answer.end());
  }).listen(0, "127.0.0.1", () => {
    process.send?.((collector.address() as AddressInfo).port);
  });
} else {
  const child = fork(import.meta.filename, ["collector"]);
  const [port] = await once(child, "message");
  const traced = {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
    OTEL_BSP_MAX_QUEUE_SIZE: "100000",
    OTEL_BSP_SCHEDULE_DELAY: "200",
  };
  await edge(traced);
  await gateway(traced);
  child.kill();
}

async function edge(traced: Record<string, string>): Promise<void> {
  const answer = create(GetPaymentResponseSchema, { cursor: "c", payment: { externalId: "e" } });
  const core = {
    getPayment: async () => answer,
    rateLimit: () => ({ limit: 10, remaining: 7, resetSeconds: 1 }),
  } as unknown as Core;
  const tracing = await createTracing(readConfig(traced).tracing, noReport);
  const { report } = createTelemetry(log, ["default"]);
  const caller = { name: "bench", account: "default", scopes: new Set(scopes) };
  const start = async (options: Partial<RpcServerOptions>) => {
    const server = createRpcServer({ core, identify: async () => caller, log, ...options });
    const { port } = await server.listen("127.0.0.1", 0);
    return { server, url: `http://127.0.0.1:${port}/payments.v1.PaymentService/GetPayment` };
  };
  const servers = {
    bare: await start({}),
    metrics: await start({ report }),
    "metrics, traced": await start({ report, tracing }),
  };
  const body = () => '{"external_id":"e"}';
  const variants = Object.entries(servers).map(([name, { url }]) => ({ name, url, body }));
  await compare("read at the RPC edge", variants);
  for (const { server } of Object.values(servers)) server.close();
  await tracing.shutdown(5_000);
}

async function gateway(traced: Record<string, string>): Promise<void> {
  let nth = 0;
  const upstream = createServer(async (asked, answer) => {
    const { external_id } = JSON.parse(await text(asked));
    const details = { payment_id: external_id, status: "success" };
    answer.writeHead(200, { "content-type": "application/json" });
    answer.end(JSON.stringify({ external_id, operation: "payment", is_success: true, details }));
  });
  upstream.listen(0, "127.0.0.1");
  await once(upstream, "listening");
  const start = (env: Record<string, string>) =>
    startTestGateway({
      UPSTREAM_URL: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`,
      UPSTREAM_LOGIN: "shop",
      UPSTREAM_PASSWORD: "password",
      AUTH_MODE: "none",
      RATE_LIMIT_INITIAL: "1000000",
      RECONCILE_AFTER: "0",
      ...env,
    });
  const tenth = { OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "0.1" };
  const gateways = {
    untraced: await start({}),
    "a tenth traced": await start({ ...traced, ...tenth }),
    "all traced": await start(traced),
  };
  const body = () =>
    JSON.stringify({
      amount: "10.10",
      currency: "UAH",
      mode: "PAYMENT_MODE_HOSTED",
      external_id: `order-${nth++}`,
      payment_method: { type: "PAYMENT_METHOD_TYPE_CC_TOKEN" },
    });
  const path = "/payments.v1.PaymentService/CreatePayment";
  const variants = Object.entries(gateways).map(([name, { rpcUrl }]) => {
    return { name, url: rpcUrl + path, body };
  });
  await compare("payment through the gateway", variants);
  for (const running of Object.values(gateways)) await running.stop();
  upstream.close();
  upstream.closeAllConnections();
}

interface Variant {
  readonly name: string;
  readonly url: string;
  readonly body: () => string;
}

/** Measures each variant in each round and prints its best round; the first is a warm-up. */
async function compare(what: string, variants: readonly Variant[]): Promise<void> {
  const times = new Map<string, number[]>(variants.map(({ name }) => [name, []]));
  for (let round = 0; round <= ROUNDS; round++) {
    for (const variant of round % 2 ? variants : variants.toReversed()) {
      const micros = await measure(variant);
      if (round > 0) times.get(variant.name)?.push(micros);
    }
  }
  const best = (name = "") => Math.min(...(times.get(name) ?? []));
  const first = best(variants[0]?.name);
  for (const { name } of variants) {
    const micros = best(name);
    const ratio = (micros / first).toFixed(2);
    console.log(`${what}, ${name}: ${micros.toFixed(0)} µs of CPU a call, ratio ${ratio}`);
  }
}

async function measure({ url, body }: Variant): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  const before = process.cpuUsage();
  let left = CALLS;
  const caller = async () => {
    while (left-- > 0) {
      const call = request(url, {
        agent,
        method: "POST",
        headers: { "content-type": "application/json" },
      });
      call.end(body());
      const [answer] = await once(call, "response");
      await text(answer);
      if (answer.statusCode !== 200) throw new Error(`answered ${answer.statusCode}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, caller));
  const { user, system } = process.cpuUsage(before);
  agent.destroy();
  return (user + system) / CALLS;
}
