import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { until } from "../until.ts";
import { commandOn, inSync, type RedisServer, startRedis } from "./server.ts";

/** A master with two replicas, watched by three sentinels. */
export interface SentinelSet {
  /** In the form of `REDIS_URL`. */
  readonly url: string;
  /** Data servers; the first was the master at the start. */
  readonly servers: readonly RedisServer[];
  readonly sentinels: readonly RedisServer[];
  /** The master's port, as most of the sentinels see it now. */
  masterPort(): Promise<number>;
  close(): Promise<void>;
}

export async function startSentinelSet(
  settings: readonly [string, string][] = [],
  downAfterMs = 500,
): Promise<SentinelSet> {
  const all: [string, string][] = [...settings, ["repl-diskless-sync-delay", "0"]];
  const master = await startRedis(all);
  const replicas = await Promise.all(
    [1, 2].map(() => startRedis([...all, ["replicaof", `127.0.0.1 ${master.port}`]])),
  );
  await Promise.all(replicas.map(inSync));
  const sentinels = await Promise.all(
    [1, 2, 3].map(() =>
      startRedis([], async (dir, port) => {
        const file = join(dir, "sentinel.conf");
        await writeFile(file, sentinelConfiguration(dir, port, master.port, downAfterMs));
        return [file, "--sentinel"];
      }),
    ),
  );
  for (const { port } of sentinels) {
    // By default a Sentinel that was blocked for 2 s does not vote for 30 s: too often on a busy
    // machine.
    await commandOn(port, "SENTINEL", "DEBUG", "tilt-period", "1000");
    await until(async () => {
      const reply = (await commandOn(port, "SENTINEL", "MASTER", NAME)) as string[];
      const state = new Map(reply.flatMap((name, at) => (at % 2 ? [] : [[name, reply[at + 1]!]])));
      return state.get("num-other-sentinels") === "2" && state.get("num-slaves") === "2";
    });
  }
  const servers = [master, ...replicas];
  return {
    url: `redis+sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(",")}/${NAME}`,
    servers,
    sentinels,
    async masterPort() {
      const ports = await Promise.all(
        sentinels.map(async ({ port }) => {
          const reply = await commandOn(port, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME);
          return Number((reply as [string, string])[1]);
        }),
      );
      return ports.sort((a, b) => a - b)[1]!;
    },
    async close() {
      await Promise.all([...sentinels, ...servers].map((server) => server.close()));
    },
  };
}

const NAME = "payments";

function sentinelConfiguration(
  dir: string,
  port: number,
  masterPort: number,
  downAfterMs: number,
): string {
  return [
    `port ${port}`,
    "bind 127.0.0.1",
    `dir ${dir}`,
    `logfile ${join(dir, "redis.log")}`,
    `sentinel monitor ${NAME} 127.0.0.1 ${masterPort} 2`,
    `sentinel down-after-milliseconds ${NAME} ${downAfterMs}`,
    `sentinel failover-timeout ${NAME} 3000`,
    `sentinel parallel-syncs ${NAME} 2`,
    "",
  ].join("\n");
}
