/** Asks a gateway for `/healthz` without a pause, in a thread that no attacker's work delays. */
import { setTimeout as delay } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";

let longest = 0;
let isOver = false;
let isReady = false;
parentPort?.on("message", () => {
  isOver = true;
});

for (;;) {
  const isLast = isOver;
  const startedMs = performance.now();
  const headers = { connection: "close" };
  const isHealthy = await fetch(`${workerData}/healthz`, { headers }).then(
    ({ status }) => status === 200,
    () => false,
  );
  // The first one also loads what `fetch` needs.
  if (isReady) longest = Math.max(longest, performance.now() - startedMs);
  else parentPort?.postMessage("ready");
  isReady = true;
  if (isLast || !isHealthy) break;
  await delay(10);
}
// Longest wait, in milliseconds.
parentPort?.postMessage(longest);
parentPort?.close();
