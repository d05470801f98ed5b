import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import type { Config } from "../config/config.ts";
import { ConfigError } from "../config/config-error.ts";
import { hasFailover } from "../config/kinds.ts";
import { CallsWithFallback, isAway } from "../ledger/fallback.ts";
import type { IntentStore } from "../ledger/intents.ts";
import type { EventLog } from "../ledger/log.ts";
import { createMemoryLedger } from "../ledger/memory.ts";
import { createRedisLedger } from "../ledger/redis.ts";
import { createSqliteLedger } from "../ledger/sqlite.ts";
import type { TokenBucket } from "../ratelimit/bucket.ts";
import { createLocalBucket, createRedisBucket } from "../ratelimit/queued-bucket.ts";
import { storeAway } from "../redis/ask.ts";
import { connectRedis } from "../redis/connect.ts";
import { describeDurability } from "../redis/durability.ts";
import { accountKeys } from "../redis/keys.ts";
import { watchOutages } from "../redis/outages.ts";
import { countReplicas } from "../redis/replicas.ts";
import type { Report } from "../report.ts";
import type { Keyring } from "../secrets/keyring.ts";
import { otherLayout, redisLayout } from "../stores/redis/layout.ts";
import { openStoreThread } from "../stores/sqlite/store-thread.ts";

/** The stores: in Redis for all replicas, in a directory of this process, or in its memory. */
export interface Stores {
  readonly eventLog: EventLog;
  readonly intents: IntentStore;
  /** Why the gateway is not ready for traffic; empty while it is. */
  notReady(): readonly string[];
  bucketOf(account: string): TokenBucket;
  /** Where the account's tokens come from. */
  budgetSourceOf(account: string): BudgetSource;
  /** Brings the gauges up to date. */
  refresh(): void;
  /** The state of Redis, for `/readyz`; absent without Redis. */
  redisHealth?(): RedisHealth;
  /** Closes the log, the intents and the connections; buckets are closed by their users. */
  close(): Promise<void>;
}

/** This process's own budget, one shared through Redis, or a share of it while Redis is away. */
export type BudgetSource = "own" | "shared" | "share";

/** The state of Redis. The gateway stays ready while Redis is away, since it still serves. */
export interface RedisHealth {
  readonly status: "up" | "away";
  /** Start of the outage, in ISO 8601. */
  readonly since?: string;
  /** Replicas in sync: in a cluster those of the primary that has the fewest. */
  readonly replicas?: number;
  /** Set when a failover may lose acknowledged writes. */
  readonly warning?: string;
}

/**
 * Opens the configured stores, and logs once what they do not guarantee.
 * @param keyrings by account: they seal secrets that Redis or the directory stores
 * @param now the clock of the stores in memory, in milliseconds; other stores have their own
 */
export async function openStores(
  config: Config,
  keyrings: ReadonlyMap<string, Keyring>,
  report: Report,
  log: Logger,
  now: () => number = Date.now,
): Promise<Stores> {
  const { redis, dataDirectory } = config;
  if (redis) return redisStores(config, redis, keyrings, report, log);
  if (dataDirectory === undefined) return memoryStores(config, report, log, now);
  return sqliteStores(config, dataDirectory, keyrings, report, log);
}

function memoryStores(config: Config, report: Report, log: Logger, now: () => number): Stores {
  log.warn(
    "neither REDIS_URL nor DATA_DIR is set: all state is kept in memory and lost when the process ends",
  );
  const ledger = createMemoryLedger({ ...ledgerOptions(config), report, now });
  return {
    eventLog: ledger,
    intents: ledger,
    notReady: () => [],
    budgetSourceOf: () => "own",
    bucketOf: () => createLocalBucket(config.rateLimit),
    refresh() {},
    close: () => ledger.close(),
  };
}

async function sqliteStores(
  config: Config,
  directory: string,
  keyrings: ReadonlyMap<string, Keyring>,
  report: Report,
  log: Logger,
): Promise<Stores> {
  const thread = await openStoreThread({
    directory,
    onStateChange(trouble) {
      if (trouble === undefined) log.info("writes to DATA_DIR work again");
      else {
        log.error(
          { reason: trouble },
          "cannot write to DATA_DIR: callbacks are answered 503, calls with an Idempotency-Key are refused; retrying. If the disk is full, free space",
        );
      }
    },
  });
  log.info({ directory }, "state is kept in DATA_DIR, which this process uses alone");
  const ledger = createSqliteLedger({
    ...ledgerOptions(config),
    thread,
    keyringOf: keyringIn(keyrings),
    report,
  });
  await Promise.all([...config.accounts.keys()].map((account) => ledger.endLeases(account)));
  // Only this process uses the disk: while it takes no writes, calls are barred by what it holds.
  const intents = new CallsWithFallback({
    ...ledgerOptions(config),
    ...{ ledger, isAway: () => true, readsGoOn: true, answerMs: diskAnswerMs },
  });
  return {
    eventLog: ledger,
    intents,
    notReady() {
      return thread.trouble === undefined ? [] : [`cannot write to DATA_DIR: ${thread.trouble}`];
    },
    budgetSourceOf: () => "own",
    bucketOf: () => createLocalBucket(config.rateLimit),
    refresh() {},
    async close() {
      await intents.close();
      await ledger.close();
      await thread.close();
    },
  };
}

const feedMessages = {
  away: "cannot read events from Redis: watchers wait; retrying",
  back: "events are read from Redis again",
  lost: "Redis has lost the events that watchers saw last: their streams end",
} as const;

const intentsMessages = {
  alone: "cannot write to Redis about calls that move money: kept in memory; retrying",
  shared: "all that calls that move money had to write is in Redis",
} as const;

const budgetMessages = {
  local: "rate budget without Redis: this replica uses its share of the limit; retrying",
  redis: "rate budget shared through Redis again",
} as const;

function keyringIn(keyrings: ReadonlyMap<string, Keyring>) {
  return (account: string): Keyring => {
    const keyring = keyrings.get(account);
    if (!keyring) throw new Error(`no such merchant account: ${account}`);
    return keyring;
  };
}

/** @throws ConfigError for state in a layout that cannot be read */
async function redisStores(
  config: Config,
  { url, prefix, minReplicas, requiredForMoney }: NonNullable<Config["redis"]>,
  keyrings: ReadonlyMap<string, Keyring>,
  report: Report,
  log: Logger,
): Promise<Stores> {
  const redis = connectRedis(url, (error) => report("redisError", { error }), report);
  const layouts = [...config.accounts.keys()].map(async (account) => {
    const layout = await otherLayout(redis.client, accountKeys(prefix, account));
    if (layout === undefined) return;
    throw new ConfigError(
      "REDIS_PREFIX",
      `${JSON.stringify(prefix)}: Redis has state of the account ${account} in layout ${layout}, and this gateway reads layout ${redisLayout} alone: set another REDIS_PREFIX, or take an empty Redis`,
    );
  });
  await Promise.all(layouts).catch(async (error: unknown) => {
    await redis.close();
    throw error;
  });
  const outages = watchOutages({
    client: redis.client,
    keys: [...config.accounts.keys()].map((account) => accountKeys(prefix, account).log),
    onAway: (reason) => report("redisAway", { reason: reasonOf(reason) }),
    onBack: (awayMs) => report("redisBack", { awayMs }),
  });
  const replicaId = randomUUID();
  const ledger = createRedisLedger({
    ...ledgerOptions(config),
    redis,
    prefix,
    minReplicas,
    keyringOf: keyringIn(keyrings),
    report,
    onFeed({ account, state, error }) {
      const level = state === "back" ? "info" : "warn";
      log[level]({ account, state, reason: reasonOf(error) }, feedMessages[state]);
    },
  });
  const intents = new CallsWithFallback({
    ...ledgerOptions(config),
    ledger,
    isAway: (error) => !requiredForMoney && isAway(error),
    unavailable: (error) => storeAway(error, redis.client),
    answerMs: redisAnswerMs,
    onStateChange(state, cause) {
      const level = state === "shared" ? "info" : "warn";
      const reason = reasonOf(cause);
      log[level]({ state, reason }, intentsMessages[state]);
    },
  });
  const sources = new Map<string, BudgetSource>();
  const onSource = (account: string, source: string) => {
    sources.set(account, source === "redis" ? "shared" : "share");
    report("budgetShared", { account, shared: source === "redis" });
  };
  if (redis.client.status === "ready") warnIfNotDurable();
  else redis.client.once("ready", () => warnIfNotDurable());
  if (minReplicas === 0 && hasFailover(url.reveal())) log.warn(failoverWarning);
  let replicas: number | undefined;
  let warning = minReplicas === 0 && hasFailover(url.reveal()) ? failoverWarning : undefined;
  const counting = countReplicas(redis.client, (count) => {
    replicas = count;
    if (minReplicas === "all" || minReplicas === 0) return;
    const before = warning;
    warning = count > minReplicas ? replicasWarning(minReplicas, count) : undefined;
    if (warning !== undefined && before === undefined) log.warn(warning);
  });
  return {
    eventLog: ledger,
    intents,
    // The gateway still serves while Redis is away.
    notReady: () => [],
    budgetSourceOf: (account) => sources.get(account) ?? "own",
    bucketOf(account) {
      onSource(account, "redis");
      return createRedisBucket({
        client: redis.client,
        keys: accountKeys(prefix, account),
        replicaId,
        ...config.rateLimit,
        onStateChange(source, reason) {
          onSource(account, source);
          const level = source === "redis" ? "info" : "warn";
          log[level]({ account, source, reason }, budgetMessages[source]);
        },
      });
    },
    refresh() {
      const { awaySinceMs } = outages;
      const isUp = redis.client.status === "ready" && awaySinceMs === undefined;
      report("redisState", { isUp, awaySinceMs, replicas });
    },
    redisHealth() {
      const { awaySinceMs } = outages;
      return {
        status: awaySinceMs === undefined ? "up" : "away",
        ...(awaySinceMs !== undefined && { since: new Date(awaySinceMs).toISOString() }),
        ...(replicas !== undefined && { replicas }),
        ...(warning !== undefined && { warning }),
      };
    },
    async close() {
      outages.close();
      counting.close();
      await intents.close();
      await ledger.close();
      await redis.close();
    },
  };

  function warnIfNotDurable(): void {
    describeDurability(redis.client, redis.sentinels !== undefined).then(
      (warning) => warning && log.warn(warning),
      (error: unknown) =>
        log.warn(
          { reason: reasonOf(error) },
          "cannot read the settings of Redis: its durability is not checked",
        ),
    );
  }
}

const failoverWarning =
  "REDIS_MIN_REPLICAS is 0: a failover of Redis may lose the newest events, locks and Idempotency-Keys, so a call that moves money may be sent a second time; set it to all";

const replicasWarning = (min: number, count: number) =>
  `REDIS_MIN_REPLICAS is ${min}, and ${count} replicas are connected: a failover to one that lacks the newest events, locks and Idempotency-Keys loses them; set it to all`;

/** With reconciliation off no call is looked up: only events settle calls. */
function ledgerOptions({ eventRetentionMs, reconcileAfterMs, reconcileGiveUpMs }: Config) {
  return {
    retentionMs: eventRetentionMs,
    firstLookMs: reconcileAfterMs ?? reconcileGiveUpMs,
    giveUpMs: reconcileGiveUpMs,
  };
}

/** Longest that Redis may take to answer a call that moves money. */
const redisAnswerMs = 500;

/** The store's thread has a longer limit of its own. */
const diskAnswerMs = 10_000;

/** The error with its causes: "the store is out of reach" alone does not say why. */
function reasonOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const cause = reasonOf(error.cause);
  return cause === undefined ? error.message : `${error.message}: ${cause}`;
}
