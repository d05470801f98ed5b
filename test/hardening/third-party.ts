/**
 * A third party, in a thread that no attacker's work delays: without a pause it asks for `/healthz`
 * by new connections, and makes calls by one that was there before.
 */
import http2 from "node:http2";
import { setTimeout as delay } from "node:timers/promises";
import { parentPort } from "node:worker_threads";

/** How long it waited, in milliseconds. */
export interface Waits {
  /** The longest wait for `/healthz`; infinite once it is not answered with 200. */
  readonly healthMs: number;
  /** 99% of its calls took at most this long. */
  readonly p99Ms: number;
  /** Calls without their answer. */
  readonly failed: number;
}

export interface Addresses {
  readonly rpc: string;
  readonly admin: string;
}

let isOver = false;

/** The gateway's addresses begin it, null ends it. */
parentPort?.on("message", (at: Addresses | null) => {
  isOver = at === null;
  if (at !== null) void ask(at);
});

/** Posts `true` after a first answer, and at the end what it waited since. */
async function ask({ rpc, admin }: Addresses): Promise<void> {
  const session = http2.connect(rpc).on("error", () => {});
  // The first ones also load what they need.
  let isHealthy = (await answers(admin)) && (await isServed(session));
  parentPort?.postMessage(true);
  let [healthMs, failed] = [0, 0];
  const calls: number[] = [];
  for (let isLast = false; isHealthy && !isLast; ) {
    isLast = isOver;
    const startedMs = performance.now();
    isHealthy = await answers(admin);
    const calledMs = performance.now();
    healthMs = Math.max(healthMs, calledMs - startedMs);
    if (!(await isServed(session))) failed += 1;
    calls.push(performance.now() - calledMs);
    await delay(10);
  }
  session.close();
  calls.sort((a, b) => a - b);
  const p99Ms = calls[Math.floor(calls.length * 0.99)] ?? 0;
  if (!isHealthy) healthMs = Infinity;
  parentPort?.postMessage({ healthMs, p99Ms, failed } satisfies Waits);
}

function answers(url: string): Promise<boolean> {
  return fetch(`${url}/healthz`, { headers: { connection: "close" } }).then(
    ({ status }) => status === 200,
    () => false,
  );
}

function isServed(session: http2.ClientHttp2Session): Promise<boolean> {
  if (session.destroyed) return Promise.resolve(false);
  const stream = session.request({
    ...{ ":method": "POST", ":path": "/grpc.health.v1.Health/Check" },
    "content-type": "application/json",
  });
  return new Promise((resolve) => {
    let status: unknown;
    stream.on("response", (headers) => {
      status = headers[":status"];
    });
    stream.on("error", () => {}).on("close", () => resolve(status === 200));
    stream.resume().end("{}");
  });
}
