import http2 from "node:http2";
import { setTimeout as delay } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";

/** Times from a request to the last byte of its answer, in milliseconds. */
export interface Waits {
  readonly p50: number;
  readonly p99: number;
  /** Calls without the expected answer. */
  readonly failed: number;
}

const perSecond = 50;
/** One long-lived connection, as services have: opened before the attack. */
const session = http2.connect(workerData);
const calls = new Set<Promise<void>>();
let times: number[] = [];
let failed = 0;
let running = true;

parentPort?.on("message", async (message) => {
  running = message !== "stop";
  if (!running) await Promise.all(calls);
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.floor(times.length * share)] ?? 0;
  const waits: Waits = { p50: at(0.5), p99: at(0.99), failed };
  times = [];
  failed = 0;
  parentPort?.postMessage(waits);
  if (!running) session.close();
});

// Calls at a steady rate, whether or not the last call was answered.
while (running) {
  const made = call();
  calls.add(made);
  made.finally(() => calls.delete(made));
  await delay(1_000 / perSecond);
}

async function call(): Promise<void> {
  const startedMs = performance.now();
  const stream = session.request({
    ":method": "POST",
    ":path": "/payments.v1.PaymentService/GetPayment",
    "content-type": "application/json",
  });
  const status = await new Promise<number>((resolve) => {
    let answered = 0;
    stream.on("response", (headers) => {
      answered = Number(headers[":status"]);
    });
    stream.on("error", () => {});
    stream.on("close", () => resolve(answered));
    stream.resume().end('{"external_id":"nobody"}');
  });
  times.push(performance.now() - startedMs);
  // 404 is the expected answer: the payment does not exist.
  if (status !== 404) failed += 1;
}
