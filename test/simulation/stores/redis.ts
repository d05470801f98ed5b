import { createRedisLog } from "../../../src/events/redis/log.ts";
import { RedisStore } from "../../../src/events/redis/store.ts";
import type { Event } from "../../../src/gen/payments/v1/event_pb.ts";
import { publishLateEndings } from "../../../src/intents/late-ending.ts";
import { createRedisIntents } from "../../../src/intents/redis/store.ts";
import { createRedisBucket } from "../../../src/ratelimit/redis/bucket.ts";
import type { RedisClient } from "../../../src/redis/connect.ts";
import { accountKeys } from "../../../src/redis/keys.ts";
import { createWriter } from "../../../src/redis/writer.ts";
import { type Account, accounts, keyringOf } from "../merchant.ts";
import type { Answer, Command } from "./real-redis.ts";
import { connectorTo, prefix } from "./redis-client.ts";
import { SimulatedServer } from "./redis-server.ts";
import type { ReplicaStores, StoreOptions, Stores } from "./stores.ts";

const retentionMs = 7 * 86_400_000;
const keysOf = (account: Account) => accountKeys(prefix, account);

/**
 * The production stores on a real redis-server, reached over the simulated network. Scripts get the
 * time of the history as the server's time.
 */
export function createRedisStores(options: StoreOptions): Stores {
  const { scheduler, network, perSecond, maxWaitMs, firstLookMs, giveUpMs, replication } = options;
  const server = new SimulatedServer(scheduler, replication);
  const minReplicas = replication?.waits ? 1 : 0;
  let opened = 0;
  const direct = directTo(server);
  return {
    async open(process): Promise<ReplicaStores> {
      const redis = connectorTo({ server, network, scheduler, process });
      const { client } = redis;
      const log = createRedisLog({ redis, prefix, retentionMs, minReplicas, keyringOf });
      return {
        log,
        intents: createRedisIntents({
          ...{ client, prefix, firstLookMs, giveUpMs },
          writer: createWriter({ redis, minReplicas }),
          onLateEnding: publishLateEndings(log),
        }),
        bucketOf: (account) =>
          createRedisBucket({
            ...{ client, keys: keysOf(account), replicaId: `${process.name}.${opened++}` },
            ...{ initialLimit: perSecond, reserve: 0.2, maxWaitMs },
          }),
      };
    },
    async isQuiet() {
      const due = await Promise.all(accounts.map((each) => direct.zcard(keysOf(each).intentsDue)));
      return due.every((count) => count === 0);
    },
    async log(account): Promise<Event[]> {
      const store = new RedisStore({
        ...{ client: direct, keys: keysOf(account), retentionMs, awaitsReplicas: false },
        writer: createWriter({ redis: { client: direct } as never, minReplicas: 0 }),
        ...{ confirmPrimary: async () => {}, seal: keyringOf(account).events, onLocked() {} },
      });
      return [...(await store.read(undefined, 10_000)).events];
    },
    sharesBudget: true,
    holdReplica: (forMs) => server.holdReplica(forMs),
    failOver: (aheadMs) => server.failOver(aheadMs),
    async close() {},
  };
}

/** Sends commands straight to the server, without the simulated network and as no process. */
function directTo(server: SimulatedServer): RedisClient {
  const ask = async (command: Command) => {
    const [[error, result]] = (await server.obey([command])) as [Answer];
    if (error) throw error;
    return result;
  };
  return {
    status: "ready",
    zcard: (key: string) => ask({ name: "zcard", args: [key] }),
    callBuffer: (name: string, ...args: Command["args"]) => ask({ name, args, bytes: true }),
    once() {},
    on() {},
  } as unknown as RedisClient;
}
