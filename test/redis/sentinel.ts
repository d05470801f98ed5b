import { until } from "../until.ts";
import {
  commandOn,
  inSync,
  type RedisServer,
  type Settings,
  settingsFile,
  startRedis,
} from "./server.ts";

export type SentinelSet = Awaited<ReturnType<typeof startSentinelSet>>;

/** The name by which Sentinels know each set. */
export const setName = "payments";

/** Starts a master with two replicas, watched by three Sentinels. */
export async function startSentinelSet(settings: Settings = [], downAfterMs = 500) {
  const all: Settings = [...settings, ["repl-diskless-sync-delay", "0"]];
  const master = await startRedis(all);
  const replicas = await Promise.all(
    [1, 2].map(() => startRedis([...all, ["replicaof", `127.0.0.1 ${master.port}`]])),
  );
  await Promise.all(replicas.map(inSync));
  const sentinels = await startSentinels(master.port, { downAfterMs });
  const servers = [master, ...replicas];
  return {
    /** In the form of `REDIS_URL`. */
    url: `redis+sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(",")}/${setName}`,
    /** Data servers; the first was the master at the start. */
    servers,
    sentinels,
    /** The master's port, as most of the Sentinels see it now. */
    masterPort: () => masterPortOf(sentinels),
    async close() {
      await Promise.all([...sentinels, ...servers].map((server) => server.close()));
    },
  };
}

/** Starts Sentinels of the master at a port; waits until they know its replicas and each other. */
export async function startSentinels(
  masterPort: number,
  { count = 3, replicas = 2, downAfterMs = 500, settings = [] as Settings } = {},
): Promise<RedisServer[]> {
  const watching: Settings = [
    ["sentinel monitor", `${setName} 127.0.0.1 ${masterPort} ${Math.ceil(count / 2)}`],
    ["sentinel down-after-milliseconds", `${setName} ${downAfterMs}`],
    ["sentinel failover-timeout", `${setName} 3000`],
    ["sentinel parallel-syncs", `${setName} 2`],
  ];
  const sentinels = await Promise.all(
    Array.from({ length: count }, () =>
      startRedis([...settings, ...watching], async (...server) => [
        await settingsFile(...server),
        "--sentinel",
      ]),
    ),
  );
  for (const { port } of sentinels) {
    // By default a Sentinel that was blocked for 2 s does not vote for 30 s: too often on a busy
    // machine.
    await commandOn(port, "SENTINEL", "DEBUG", "tilt-period", "1000");
    await until(async () => {
      const told = ((await commandOn(port, "SENTINEL", "MASTER", setName)) as string[]).join(" ");
      return (
        told.includes(`num-other-sentinels ${count - 1} `) &&
        told.includes(`num-slaves ${replicas} `)
      );
    });
  }
  return sentinels;
}

/** The master's port, as most of the Sentinels that answer see it now. */
export async function masterPortOf(sentinels: readonly RedisServer[]): Promise<number> {
  const ports = await Promise.all(
    sentinels
      .filter(({ isRunning, isPaused }) => isRunning && !isPaused)
      .map(async ({ port }) => {
        const reply = await commandOn(port, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", setName);
        return Number((reply as [string, string])[1]);
      }),
  );
  return mostOf(ports);
}

/** The number that is there most often. */
export function mostOf(all: readonly number[]): number {
  const timesOf = (one: number) => all.filter((other) => other === one).length;
  return all.toSorted((a, b) => timesOf(b) - timesOf(a))[0] ?? 0;
}
