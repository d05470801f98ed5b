import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import net from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { brotliCompressSync, constants } from "node:zlib";
import { createWatchTokens } from "../../src/auth/watch-token.ts";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { keysText, newKey } from "../auth/issuer.ts";
import { spawnCli } from "../gateway/spawn.ts";
import { listen } from "../listen.ts";
import { freshDirectory } from "../stores/sqlite/directories.ts";
import type { Addresses, Waits } from "./third-party.ts";

/** A gateway in a process of its own with a small heap, its service, and who may call it. */
export type Target = Awaited<ReturnType<typeof startTarget>>;

const watchSecret = "w".repeat(40);
const heapMiB = 512;

/** Starts the program of `file` as the gateway; by default the command line. */
export async function startTarget(file?: string, env: Record<string, string> = {}) {
  const { path, remove } = freshDirectory();
  const keys = { full: newKey(), none: newKey() };
  const keysFile = join(path, "keys.json");
  const full = { name: "full", scopes: ["payments:write", "payments:read", "wallet:read"] };
  const none = { name: "none", key: keys.none, scopes: [] };
  writeFileSync(keysFile, keysText([{ ...full, key: keys.full }, none]));

  let handle: http.RequestListener = (_, response) => response.writeHead(404).end("{}");
  const service = http.createServer((request, response) => handle(request, response));

  const free = "127.0.0.1:0";
  const spawned = spawnCli(
    ["serve"],
    {
      ...{ PUBLIC_ADDR: free, RPC_ADDR: free, ADMIN_ADDR: free, PUBLIC_URL: "http://127.0.0.1:1" },
      UPSTREAM_URL: `http://127.0.0.1:${await listen(service)}`,
      ...{ UPSTREAM_LOGIN: "shop", UPSTREAM_PASSWORD: "password" },
      UPSTREAM_PREVIOUS_PASSWORDS: "one,two",
      ...{ AUTH_MODE: "keys", API_KEYS_FILE: keysFile, WATCH_TOKEN_SECRET: watchSecret },
      ...{ ALLOW_VOLATILE: "true", RATE_LIMIT_INITIAL: "100000", LOG_LEVEL: "error" },
      NODE_OPTIONS: `--max-old-space-size=${heapMiB}`,
      ...env,
    },
    file,
  );
  const { rpc = "", public: publicUrl = "", admin = "" } = await spawned.ready;
  const watch = await createWatchTokens(new Secret(watchSecret)).issue({
    ...{ account: "default", kind: EventKind.PAYMENT, externalId: "order-1" },
    expiresAtMs: Date.now() + 3_600_000,
  });
  return {
    ...{ rpc, publicUrl, admin, spawned },
    keys: { ...keys, watch },
    /** What the payments service answers from now on. */
    answer(next: http.RequestListener) {
      handle = next;
    },
    end() {
      spawned.child.kill("SIGKILL");
      service.close();
      service.closeAllConnections();
      remove();
    },
  };
}

/** What an attack cost the process, and how long a third party waited meanwhile. */
export interface Cost extends Waits {
  /** Largest growth of its memory during the attack, in MiB. */
  readonly grownMiB: number;
  /** Processor time, in milliseconds. */
  readonly cpuMs: number;
  readonly died: boolean;
}

export function words({ grownMiB, cpuMs, healthMs, p99Ms, died }: Cost): string {
  if (died) return "the process died";
  const waits = `/healthz within ${Math.round(healthMs)} ms, p99 of calls ${p99Ms.toFixed(1)} ms`;
  return `+${Math.round(grownMiB)} MiB, ${cpuMs} ms of CPU, ${waits}`;
}

let thirdParty: Worker | undefined;

/** A gateway in a process of its own. */
export type Attacked = Pick<Target, "rpc" | "admin" | "spawned">;

/** Measures a process while it is attacked (Linux). */
export async function costOf(target: Attacked, attack: () => Promise<unknown>): Promise<Cost> {
  const { pid, exitCode } = target.spawned.child;
  if (exitCode !== null) throw new Error("the gateway is dead");
  await collected(target);
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
  const beforeKiB = statusOf(pid, "VmRSS");
  const beforeMs = cpuMsOf(pid);
  thirdParty ??= new Worker(new URL("./third-party.ts", import.meta.url));
  thirdParty.unref();
  thirdParty.postMessage({ rpc: target.rpc, admin: target.admin } satisfies Addresses);
  await once(thirdParty, "message");
  const waited = once(thirdParty, "message");
  const left = target.spawned.exit.then(() => true);
  const attacked = attack();
  const isAlive = () => false;
  let died = await Promise.race([left, attacked.then(isAlive, isAlive)]);
  thirdParty.postMessage(null);
  const [waits] = (await waited) as [Waits];
  died ||= target.spawned.child.exitCode !== null || target.spawned.child.signalCode !== null;
  if (!died) await attacked;
  if (died) return { grownMiB: Number.NaN, cpuMs: Number.NaN, died, ...waits };
  const grownMiB = (statusOf(pid, "VmHWM") - beforeKiB) / 1024;
  return { grownMiB, cpuMs: cpuMsOf(pid) - beforeMs, died, ...waits };
}

/** Resolves when the process is idle: what earlier attacks have left to do does not count. */
async function collected({ spawned: { child } }: Attacked): Promise<void> {
  for (let last = -1; last !== cpuMsOf(child.pid); ) {
    last = cpuMsOf(child.pid);
    await delay(100);
  }
}

function statusOf(pid: number | undefined, name: string): number {
  const text = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(text)?.[1]);
}

/** Processor time of a process; the kernel counts it in hundredths of a second. */
function cpuMsOf(pid: number | undefined): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** A message of many repetitions, as few bytes of brotli. */
export function brotli(unit: Buffer | string, bytes: number): Buffer {
  const message = Buffer.alloc(bytes - (bytes % unit.length), unit as never);
  const params = { [constants.BROTLI_PARAM_LGWIN]: 24 };
  return brotliCompressSync(message, { params });
}

/** Sends the same request many times at once over one HTTP/2 connection. */
export async function flood(
  url: string,
  path: string,
  count: number,
  headers: Record<string, string>,
  body: Buffer,
): Promise<void> {
  const session = http2.connect(url);
  session.on("error", () => {});
  const closed = once(session, "close");
  const streams = Array.from({ length: count }, () => {
    const stream = session.request({ ":method": "POST", ":path": path, ...headers });
    stream.on("error", () => {}).resume();
    stream.end(body);
    return once(stream, "close").catch(() => {});
  });
  await Promise.race([Promise.all(streams), closed]);
  session.destroy();
}

/**
 * Opens sockets that each send `first`, waits until all have, then sends `last` on all of them at
 * once. Resolves when each was answered or closed.
 */
export async function together(
  url: string,
  count: number,
  first: Buffer,
  last: Buffer,
): Promise<void> {
  const { hostname, port } = new URL(url);
  const sockets = Array.from({ length: count }, () => net.connect(Number(port), hostname));
  const over = sockets.map(
    (socket) =>
      new Promise<void>((resolve) => {
        socket.on("error", () => {}).on("data", () => resolve());
        socket.on("close", () => resolve());
      }),
  );
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  const sent = sockets.map(
    (socket) => new Promise<void>((resolve) => socket.write(first, () => resolve())),
  );
  await Promise.all(sent);
  await delay(100);
  for (const socket of sockets) socket.write(last);
  await Promise.all(over);
  for (const socket of sockets) socket.destroy();
}

/** The head of an HTTP/1.1 request. */
export function head(path: string, headers: Record<string, string | number>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST ${path} HTTP/1.1\r\nhost: localhost\r\n${lines.join("")}\r\n`;
}
