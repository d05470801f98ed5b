import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import type { Metrics } from "./admin/metrics.ts";
import type { Config } from "./config.ts";
import type { EventLog } from "./events/log.ts";
import { createMemoryLog } from "./events/memory-log.ts";
import { createRedisLog } from "./events/redis-log.ts";
import { createMemoryIntents } from "./intents/memory-store.ts";
import { createRedisIntents } from "./intents/redis-store.ts";
import type { IntentStore } from "./intents/store.ts";
import type { TokenBucket } from "./ratelimit/bucket.ts";
import { createLocalBucket } from "./ratelimit/local-bucket.ts";
import { createRedisBucket } from "./ratelimit/redis-bucket.ts";
import { connectRedis } from "./redis/connect.ts";
import { describeDurability } from "./redis/durability.ts";
import { accountKeys } from "./redis/keys.ts";
import { redisObserver } from "./store-observers.ts";

/** Where state is kept: in Redis for all replicas, or in this process alone. */
export interface Stores {
  readonly eventLog: EventLog;
  readonly intents: IntentStore;
  bucketOf(account: string): TokenBucket;
  /** Brings the gauges up to date. */
  refresh(): void;
  /** Closes the log, the intents and the connections; buckets are closed by whoever took them. */
  close(): Promise<void>;
}

/** Opens the stores that the configuration asks for, and says once what they do not promise. */
export function openStores(config: Config, metrics: Metrics, log: Logger): Stores {
  return config.redis ? redisStores(config, config.redis, metrics, log) : memoryStores(config, log);
}

function memoryStores(config: Config, log: Logger): Stores {
  log.warn("REDIS_URL is not set: events and budget are kept in this process alone, not durable");
  const eventLog = createMemoryLog({ retentionMs: config.eventRetentionMs });
  return {
    eventLog,
    intents: createMemoryIntents(intentOptions(config)),
    bucketOf: () => createLocalBucket(config.rateLimit),
    refresh() {},
    close: () => eventLog.close(),
  };
}

function redisStores(
  config: Config,
  { url, prefix, minReplicas }: NonNullable<Config["redis"]>,
  metrics: Metrics,
  log: Logger,
): Stores {
  const { onError, onCommand, refresh } = redisObserver(metrics, log);
  const redis = connectRedis(url, onError, onCommand);
  const replicaId = randomUUID();
  const eventLog = createRedisLog({
    redis,
    prefix,
    minReplicas,
    retentionMs: config.eventRetentionMs,
    observer: {
      onFeed({ account, state, error }) {
        const level = state === "back" ? "info" : "warn";
        log[level]({ account, state, reason: reasonOf(error) }, "live delivery from Redis");
      },
    },
  });
  const intents = createRedisIntents({
    ...intentOptions(config),
    client: redis.client,
    prefix,
    onStateChange(state, cause) {
      const level = state === "shared" ? "info" : "warn";
      const reason = reasonOf(cause);
      log[level]({ state, reason }, "calls that move money and the other replicas");
    },
  });
  redis.client.once("ready", () => warnIfNotDurable());
  return {
    eventLog,
    intents,
    bucketOf(account) {
      metrics.bucketShared.set({ account }, 1);
      return createRedisBucket({
        client: redis.client,
        keys: accountKeys(prefix, account),
        replicaId,
        ...config.rateLimit,
        onStateChange(source, reason) {
          metrics.bucketShared.set({ account }, source === "redis" ? 1 : 0);
          const level = source === "redis" ? "info" : "warn";
          log[level]({ account, source, reason }, "the rate budget has changed its source");
        },
      });
    },
    refresh: () => refresh(redis.client),
    async close() {
      await Promise.all([intents.close(), eventLog.close()]);
      await redis.close();
    },
  };

  function warnIfNotDurable(): void {
    describeDurability(redis.client).then(
      (warning) => warning && log.warn(warning),
      (error: unknown) => log.warn({ reason: reasonOf(error) }, "Redis does not tell its settings"),
    );
  }
}

/** With reconciliation off, nothing is looked up: events alone settle. */
function intentOptions({ reconcileAfterMs, reconcileGiveUpMs }: Config) {
  return { firstLookMs: reconcileAfterMs ?? reconcileGiveUpMs, giveUpMs: reconcileGiveUpMs };
}

function reasonOf(error: unknown): string | undefined {
  return error instanceof Error ? error.message : undefined;
}
