import http from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";

/** In milliseconds, from the request to the last byte of its answer. */
export interface Waits {
  readonly p50: number;
  readonly p99: number;
  /** Calls without the answer that was expected. */
  readonly failed: number;
}

const perSecond = 50;
const agent = new http.Agent({ keepAlive: true, maxSockets: 50 });
const times: number[] = [];
const calls = new Set<Promise<void>>();
let failed = 0;
let running = true;

parentPort?.once("message", () => {
  running = false;
});

// At a steady pace, whether or not the last call was answered.
while (running) {
  const made = call();
  calls.add(made);
  made.finally(() => calls.delete(made));
  await delay(1_000 / perSecond);
}
await Promise.all(calls);
agent.destroy();
times.sort((a, b) => a - b);
const at = (share: number) => times[Math.floor(times.length * share)] ?? 0;
const waits: Waits = { p50: at(0.5), p99: at(0.99), failed };
parentPort?.postMessage(waits);

async function call(): Promise<void> {
  const startedMs = performance.now();
  const status = await new Promise<number>((resolve) => {
    const request = http.request(`${workerData}/payments.v1.PaymentService/GetPayment`, {
      method: "POST",
      agent,
      headers: { "content-type": "application/json" },
    });
    request.on("response", (response) => {
      response.resume().once("end", () => resolve(response.statusCode ?? 0));
    });
    request.on("error", () => resolve(0));
    request.end('{"external_id":"nobody"}');
  });
  times.push(performance.now() - startedMs);
  // Nobody is known, which is an answer.
  if (status !== 404) failed += 1;
}
