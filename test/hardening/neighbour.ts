import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { Waits } from "./neighbour-worker.ts";

/** A caller who minds its own business, and what it had to wait. */
export interface Neighbour {
  /** What it had to wait since the last time it was asked. */
  lap(): Promise<Waits>;
  stop(): Promise<Waits>;
}

/** In a thread of its own, where the attacker's work does not hold it up. */
export async function startNeighbour(rpcUrl: string): Promise<Neighbour> {
  const worker = new Worker(new URL("./neighbour-worker.ts", import.meta.url), {
    workerData: rpcUrl,
  });
  await once(worker, "online");
  const ask = async (message: "lap" | "stop") => {
    worker.postMessage(message);
    const [waits] = await once(worker, "message");
    return waits;
  };
  return {
    lap: () => ask("lap"),
    async stop() {
      const waits = await ask("stop");
      await worker.terminate();
      return waits;
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
