import { dueIndex } from "../../../src/ledger/calls.ts";
import { LedgerWithFallback } from "../../../src/ledger/fallback.ts";
import { expiringIndexes } from "../../../src/ledger/listing.ts";
import { QueuedBucket } from "../../../src/ratelimit/queued-bucket.ts";
import { isAway, storeAway } from "../../../src/redis/ask.ts";
import type { RedisClient, RedisConnector } from "../../../src/redis/connect.ts";
import { accountKeys } from "../../../src/redis/keys.ts";
import { RedisAccount } from "../../../src/stores/redis/account.ts";
import { createRedisKernel } from "../../../src/stores/redis/kernel.ts";
import { type Account, accounts, keyringOf } from "../merchant.ts";
import type { Answer, Command } from "./real-redis.ts";
import { connectorTo, prefix } from "./redis-client.ts";
import { createSimulatedServer, type SimulatedServer } from "./redis-server.ts";
import type { ReplicaStores, StoreOptions, Stores } from "./stores.ts";

const retentionMs = 7 * 86_400_000;
const keysOf = (account: Account) => accountKeys(prefix, account);

/**
 * The production stores on a real redis-server, reached over the simulated network. Scripts get the
 * time of the history as the server's time.
 */
export function createRedisStores(options: StoreOptions): Stores {
  const { scheduler, network, perSecond, maxWaitMs, firstLookMs, giveUpMs, replication } = options;
  const server = createSimulatedServer(scheduler, replication);
  const hasSentinels = (replication?.replicas ?? 1) > 1;
  const minReplicas = hasSentinels ? "all" : replication?.waits ? 1 : 0;
  let opened = 0;
  const direct = directTo(server);
  const redis = { client: direct, sentinels: undefined } as unknown as RedisConnector;
  return {
    async open(process): Promise<ReplicaStores> {
      const redis = connectorTo({ server, network, scheduler, process }, hasSentinels);
      const { client } = redis;
      const ages = { retentionMs, firstLookMs, giveUpMs };
      const ledger = new LedgerWithFallback({
        ...{ ...ages, keyringOf, answerMs: 500 },
        kernel: createRedisKernel({
          ...{ redis, prefix, minReplicas, retentionMs, ofRecords: expiringIndexes(ages) },
        }),
        isAway: (error) => isAway(error, client, keysOf(accounts[0]).log),
        unavailable: (error) => storeAway(error, client),
      });
      return {
        ledger,
        bucketOf: (account) =>
          new QueuedBucket({
            ...{ client, keys: keysOf(account), replicaId: `${process.name}.${opened++}` },
            ...{ initialLimit: perSecond, reserve: 0.2, maxWaitMs },
          }),
      };
    },
    async isQuiet() {
      // With slow replicas a gateway may still write what it could not write before.
      if (scheduler.nowMs - server.waitedMs < 1_000) return false;
      const due = await Promise.all(
        accounts.map((each) => direct.zcard(keysOf(each).index(dueIndex))),
      );
      return due.every((count) => count === 0);
    },
    async log(account) {
      // Replicas hold everything by now: who reads would let all of it be shown.
      await server.showAll(keysOf(account).log);
      const ofRecords = expiringIndexes({ retentionMs });
      const store = new RedisAccount(
        account,
        { redis, prefix, retentionMs, ofRecords },
        {} as never,
      );
      return (await store.page(undefined, undefined, 10_000)).rows;
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
