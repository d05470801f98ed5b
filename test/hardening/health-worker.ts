/** Asks gateways for `/healthz` without a pause, in a thread that no attacker's work delays. */
import { setTimeout as delay } from "node:timers/promises";
import { parentPort } from "node:worker_threads";

let isOver = false;

/** The admin listener's address begins it, null ends it. */
parentPort?.on("message", (url: string | null) => {
  isOver = url === null;
  if (url !== null) void ask(url);
});

/** Posts `true` after a first answer, and at the end the longest wait since, in milliseconds. */
async function ask(url: string): Promise<void> {
  let longest = 0;
  // The first one also loads what `fetch` needs.
  let isHealthy = await answers(url);
  parentPort?.postMessage(true);
  for (let isLast = false; isHealthy && !isLast; ) {
    isLast = isOver;
    const startedMs = performance.now();
    isHealthy = await answers(url);
    longest = Math.max(longest, performance.now() - startedMs);
    await delay(10);
  }
  parentPort?.postMessage(longest);
}

function answers(url: string): Promise<boolean> {
  return fetch(`${url}/healthz`, { headers: { connection: "close" } }).then(
    ({ status }) => status === 200,
    () => false,
  );
}
