/**
 * How many permits a second the local bucket can grant and settle, without and with a long queue.
 * Run: `node bench/bucket.ts`.
 */
import { QueuedBucket } from "../src/ratelimit/queued-bucket.ts";

const { signal } = new AbortController();
const answer = { limit: "1000000", remaining: "999999", reset: "1" };

async function free(calls: number): Promise<void> {
  const bucket = new QueuedBucket({ initialLimit: 1_000_000, reserve: 0.2, maxWaitMs: 1_000 });
  const since = performance.now();
  for (let call = 0; call < calls; call++) {
    (await bucket.take({ priority: "read", signal })).observe(answer);
  }
  report("free", calls, since);
  await bucket.close();
}

/** Queues `calls` calls, then aborts them from the front. */
async function line(calls: number): Promise<void> {
  const bucket = new QueuedBucket({ initialLimit: 1, reserve: 0, maxWaitMs: 1e12 });
  await bucket.take({ priority: "read", signal });
  const callers = Array.from({ length: calls }, () => new AbortController());
  const since = performance.now();
  const waiting = callers.map((caller) => bucket.take({ priority: "read", signal: caller.signal }));
  for (const caller of callers) caller.abort();
  await Promise.allSettled(waiting);
  report("join and leave the line", calls, since);
  await bucket.close();
}

function report(name: string, calls: number, since: number): void {
  const seconds = (performance.now() - since) / 1_000;
  console.log(`${name}: ${Math.round(calls / seconds)} calls a second (${calls} calls)`);
}

await free(500_000);
await line(100_000);
