import http from "node:http";
import { setTimeout as delay } from "node:timers/promises";

/** A caller who minds its own business, and what it had to wait. */
export interface Neighbour {
  /** Ends it. Times in milliseconds. */
  stop(): Promise<{ readonly p50: number; readonly p99: number; readonly failed: number }>;
}

const perSecond = 50;

/** Calls at a steady pace by a few kept connections, whether or not the last call was answered. */
export function startNeighbour(rpcUrl: string): Neighbour {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 50 });
  const times: number[] = [];
  const calls = new Set<Promise<void>>();
  let failed = 0;
  let running = true;

  async function call(): Promise<void> {
    const startedMs = performance.now();
    const status = await new Promise<number>((resolve) => {
      const request = http.request(`${rpcUrl}/payments.v1.PaymentService/GetPayment`, {
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

  const loop = (async () => {
    while (running) {
      const made = call();
      calls.add(made);
      made.finally(() => calls.delete(made));
      await delay(1_000 / perSecond);
    }
  })();

  return {
    async stop() {
      running = false;
      await loop;
      await Promise.all(calls);
      agent.destroy();
      times.sort((a, b) => a - b);
      const at = (share: number) => times[Math.floor(times.length * share)] ?? 0;
      return { p50: at(0.5), p99: at(0.99), failed };
    },
  };
}

/** What the operators' listener tells of its process. */
export async function footprint(adminUrl: string) {
  const metrics = await (await fetch(`${adminUrl}/metrics`)).text();
  const value = (name: string) =>
    Number(new RegExp(`^${name} (\\S+)$`, "m").exec(metrics)?.[1] ?? Number.NaN);
  return {
    rssMb: value("process_resident_memory_bytes") / 1e6,
    files: value("process_open_fds"),
    /** By limit. */
    cuts: Object.fromEntries(
      [...metrics.matchAll(/connections_cut_total\{.*limit="(\w+)"\} (\d+)/g)].map((found) => [
        found[1],
        Number(found[2]),
      ]),
    ),
  };
}
