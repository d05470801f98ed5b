import { randomUUID } from "node:crypto";
import type { Config } from "../config/config.ts";
import { ConfigError } from "../errors.ts";
import { LedgerWithFallback } from "../ledger/fallback.ts";
import { expiringIndexes } from "../ledger/listing.ts";
import { QueuedBucket } from "../ratelimit/queued-bucket.ts";
import { inWords, isAway, storeAway, troubleOf } from "../redis/ask.ts";
import { connectRedis } from "../redis/connect.ts";
import { countReplicas, describeDurability } from "../redis/durability.ts";
import { accountKeys } from "../redis/keys.ts";
import { watchOutages } from "../redis/outages.ts";
import { hasFailover } from "../redis/url.ts";
import type { Logger } from "../report.ts";
import { createRedisKernel } from "../stores/redis/kernel.ts";
import type { LedgerSettings, Stores } from "./stores.ts";

/** @throws ConfigError for state in a layout that cannot be read */
export async function redisStores(
  config: Config,
  { url, prefix, minReplicas, requiredForMoney, tls }: NonNullable<Config["redis"]>,
  ledgerSettings: LedgerSettings,
  log: Logger,
): Promise<Stores> {
  const { report } = ledgerSettings;
  const redis = connectRedis(url, (error) => report("redisError", { reason: inWords(error) }), {
    report,
    tls,
  });
  const accounts = [...config.accounts.keys()];
  const logChange = (isBack: boolean, record: object, message: string) =>
    log[isBack ? "info" : "warn"](record, message);
  const { retentionMs } = ledgerSettings;
  const kernel = createRedisKernel({
    ...{ redis, prefix, minReplicas, retentionMs, ofRecords: expiringIndexes(ledgerSettings) },
    onFeed(account, state, error) {
      const record = { account, state, reason: troubleIn(error) };
      logChange(state === "back", record, feedMessages[state]);
    },
  });
  const probe = (account: string) => kernel.account(account).probe();
  const layouts = accounts.map(async (account) => {
    // The gateway starts while Redis is away, too.
    const trouble = await probe(account).catch(layoutTrouble);
    if (trouble === undefined) return;
    throw new ConfigError(
      "REDIS_PREFIX",
      `${JSON.stringify(prefix)}: account ${account}: ${trouble}: set another REDIS_PREFIX, or take an empty Redis`,
    );
  });
  await Promise.all(layouts);
  const outages = watchOutages({
    ...{ accounts, probe },
    onAway: (reason, awayMs, accounts) =>
      report("redisAway", { reason: troubleIn(reason), awayMs, accounts }),
    onBack: (awayMs) => report("redisBack", { awayMs }),
  });
  const replicaId = randomUUID();
  const ledger = new LedgerWithFallback({
    ...{ ...ledgerSettings, kernel, report },
    isAway: (error, account) =>
      !requiredForMoney && isAway(error, redis.client, accountKeys(prefix, account).log),
    unavailable: (error) => storeAway(error, redis.client),
    answerMs: redisAnswerMs,
    onStateChange(account, state, cause) {
      const record = { account, state, reason: troubleIn(cause) };
      logChange(state === "shared", record, intentsMessages[state]);
    },
  });
  if (redis.client.status === "ready") warnIfNotDurable();
  else redis.client.once("ready", () => warnIfNotDurable());
  let replicas: number | undefined;
  let warning = minReplicas === 0 && hasFailover(url.reveal()) ? failoverWarning : undefined;
  if (warning !== undefined) log.warn(warning);
  const counting = countReplicas(redis.client, (count) => {
    replicas = count;
    if (minReplicas === "all" || minReplicas === 0) return;
    const before = warning;
    warning = replicasWarning(minReplicas, count);
    if (warning !== undefined && warning !== before) log.warn(warning);
  });
  return {
    ledger,
    // The gateway still serves while Redis is away.
    notReady: () => [],
    bucketOf: (account, report) =>
      new QueuedBucket({
        client: redis.client,
        keys: accountKeys(prefix, account),
        ...{ ...config.rateLimit, account, report, replicaId },
      }),
    redisHealth() {
      const { awaySince: since } = outages;
      return { ...(since ? { status: "away", since } : { status: "up" }), replicas, warning };
    },
    async close() {
      outages.close();
      counting.close();
      await ledger.close();
      await redis.close();
    },
  };

  function warnIfNotDurable(): void {
    describeDurability(redis).then(
      (warning) => warning && log.warn(warning),
      (error: unknown) =>
        log.warn(
          { reason: troubleIn(error) },
          "cannot read the settings of Redis: its durability is not checked",
        ),
    );
  }
}

const failoverWarning =
  "REDIS_MIN_REPLICAS is 0: a failover of Redis may lose the newest events, locks and Idempotency-Keys, so a call that moves money may be sent a second time; set it to all";

function replicasWarning(min: number, count: number): string | undefined {
  if (count === min) return undefined;
  const effect =
    count < min
      ? "nothing counts as stored, so callbacks are answered 503 and calls that move money are UNAVAILABLE; connect replicas, or lower it"
      : "a failover to one that lacks the newest events, locks and Idempotency-Keys loses them; set it to all";
  return `REDIS_MIN_REPLICAS is ${min}, and ${count} replicas are connected: ${effect}`;
}

const feedMessages = {
  away: "cannot read events from Redis: watchers wait; retrying",
  back: "events are read from Redis again",
  lost: "Redis has lost the events that watchers saw last: their streams end",
} as const;

const intentsMessages = {
  alone: "cannot write to Redis about calls that move money: kept in memory; retrying",
  shared: "Redis takes what calls that move money have to write again",
} as const;

/** Longest that Redis may take to answer a call that moves money. */
const redisAnswerMs = 500;

const troubleIn = (error: unknown) => (error instanceof Error ? troubleOf(error) : undefined);

/** What open-log.lua says of state that this version cannot read; undefined for any other error. */
const layoutTrouble = (error: unknown) =>
  /its state is in layout [^,]{1,20}, and this gateway reads layout \d+ alone/.exec(
    troubleIn(error) ?? "",
  )?.[0];
