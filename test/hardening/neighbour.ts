import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { Waits } from "./neighbour-worker.ts";

/** A well-behaved caller that measures its waits while others attack. */
export interface Neighbour {
  /** The waits since the last lap. */
  lap(): Promise<Waits>;
  stop(): Promise<Waits>;
}

/** Runs the caller in its own thread, where the attacker's work does not delay it. */
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

/** Memory, open files and cuts of a gateway's process, from its metrics. */
export async function footprint(adminUrl: string) {
  const metrics = await (await fetch(`${adminUrl}/metrics`)).text();
  const value = (name: string) =>
    Number(new RegExp(`^${name} (\\S+)$`, "m").exec(metrics)?.[1] ?? Number.NaN);
  return {
    rssMb: value("process_resident_memory_bytes") / 1e6,
    files: value("process_open_fds"),
    /** Number of cuts by limit. */
    cuts: Object.fromEntries(
      [...metrics.matchAll(/connections_cut_total\{.*limit="(\w+)"\} (\d+)/g)].map((found) => [
        found[1],
        Number(found[2]),
      ]),
    ),
  };
}
