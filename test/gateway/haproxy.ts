import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Gateway } from "../../src/app/gateway.ts";
import { freePort } from "../redis/server.ts";
import { until } from "../until.ts";

const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` };

/** Why tests behind HAProxy cannot run here, for `skip`; false if they can, and always in CI. */
export const withoutHaproxy: string | false =
  process.env.CI || spawnSync("haproxy", ["-v"], { env }).status === 0
    ? false
    : "needs haproxy: apt-get install haproxy";

/** The addresses of one gateway. */
export type Backend = Pick<Gateway, "rpcUrl" | "publicUrl" | "adminUrl">;

export type Haproxy = Awaited<ReturnType<typeof start>>;

/** A HAProxy in front of some gateways. It requests their `/readyz` ten times a second. */
export async function startHaproxy(backends: readonly Backend[], triesLeft = 5): Promise<Haproxy> {
  const proxy = await start(backends);
  try {
    await proxy.serving(backends.length);
    return proxy;
  } catch (error) {
    await proxy.close();
    // Another process may have taken a port that was free before.
    if (triesLeft === 0 || !/cannot bind/i.test(`${error}`)) throw error;
    return startHaproxy(backends, triesLeft - 1);
  }
}

async function start(backends: readonly Backend[]) {
  const dir = await mkdtemp(join(tmpdir(), "haproxy-"));
  const ports = await Promise.all(Array.from({ length: 4 }, freePort));
  const [grpc = 0, rpc = 0, web = 0, stats = 0] = ports;
  const file = join(dir, "haproxy.cfg");
  await writeFile(file, configuration(backends, { grpc, rpc, web, stats }));
  const child = spawn("haproxy", ["-db", "-f", file], { env, stdio: ["ignore", "ignore", "pipe"] });
  let errors = "";
  child.stderr.on("data", (chunk) => {
    errors += chunk;
  });
  const url = (port: number) => `http://127.0.0.1:${port}`;
  return {
    /** HTTP/2 from the caller to the rpc listener, as gRPC needs it. */
    grpcUrl: url(grpc),
    /** HTTP/1.1 from the caller to the rpc listener. */
    rpcUrl: url(rpc),
    publicUrl: url(web),
    /** Resolves when `count` gateways are up on each listener. */
    async serving(count: number) {
      const gone = new AbortController();
      const onExit = () => gone.abort(new Error(`haproxy ended: ${errors}`));
      child.once("close", onExit);
      await until(async () => (await upOf(stats)) === 3 * count, "backends", gone.signal);
      child.off("close", onExit);
    },
    async close() {
      await end(child);
      await rm(dir, { recursive: true, force: true });
    },
  };
}

type Ports = Record<"grpc" | "rpc" | "web" | "stats", number>;

/**
 * A configuration as an operator would write it. It retries only connections that were not
 * established, on which nothing was sent.
 */
function configuration(backends: readonly Backend[], { grpc, rpc, web, stats }: Ports): string {
  const servers = (listener: "rpcUrl" | "publicUrl", options = "") =>
    backends
      .map((backend, index) => {
        const { host } = new URL(backend[listener]);
        const { port } = new URL(backend.adminUrl);
        return `  server gateway${index} ${host} check check-proto h1 port ${port} ${options}`;
      })
      .join("\n");
  return `
global
  maxconn 2000
defaults
  mode http
  timeout connect 5s
  timeout check 5s
  timeout client 1m
  timeout server 1m
  timeout tunnel 1m
  option redispatch 1
  retries 3
  retry-on conn-failure
  balance roundrobin
  default-server inter 100ms fall 1 rise 1
listen grpc
  bind 127.0.0.1:${grpc} proto h2
  option httpchk GET /readyz
${servers("rpcUrl", "proto h2")}
listen rpc
  bind 127.0.0.1:${rpc}
  option httpchk GET /readyz
${servers("rpcUrl")}
listen public
  bind 127.0.0.1:${web}
  option httpchk GET /readyz
${servers("publicUrl")}
frontend stats
  bind 127.0.0.1:${stats}
  stats enable
  stats uri /
`;
}

/** Number of servers that are up, over all listeners. */
async function upOf(stats: number): Promise<number> {
  const csv = await (await fetch(`http://127.0.0.1:${stats}/;csv`)).text();
  return csv.split("\n").filter((line) => /^\w+,gateway\d+,/.test(line) && line.includes(",UP,"))
    .length;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}
