import type { Config } from "../config/config.ts";
import { ConfigError, ofAccount } from "../errors.ts";
import { LedgerWithFallback } from "../ledger/fallback.ts";
import { Ledger } from "../ledger/ledger.ts";
import { QueuedBucket } from "../ratelimit/queued-bucket.ts";
import type { Logger, Report } from "../report.ts";
import type { Keyring } from "../secrets/keyring.ts";
import { createMemoryKernel } from "../stores/memory/kernel.ts";
import { StoreRefused } from "../stores/sqlite/errors.ts";
import { createSqliteKernel } from "../stores/sqlite/kernel.ts";
import { openStoreThread } from "../stores/sqlite/store-thread.ts";
import type { LedgerSettings, Stores } from "./stores.ts";

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
  const { redis, dataDirectory, reconcileGiveUpMs: giveUpMs } = config;
  const ledgerSettings: LedgerSettings = {
    retentionMs: config.eventRetentionMs,
    // With reconciliation off no call is looked up: only events settle calls.
    firstLookMs: config.reconcileAfterMs ?? giveUpMs,
    giveUpMs,
    locksMs: config.reconcileAfterMs === undefined ? giveUpMs : undefined,
    keyringOf: (account) => ofAccount(keyrings, account),
    report,
  };
  if (redis) {
    const { redisStores } = await import("./redis-stores.ts");
    return redisStores(config, redis, ledgerSettings, log);
  }
  if (dataDirectory !== undefined) return sqliteStores(config, dataDirectory, ledgerSettings, log);
  log.warn(
    "neither REDIS_URL nor DATA_DIR is set: all state is kept in memory and lost when the process ends",
  );
  const kernel = createMemoryKernel({ ...ledgerSettings, now });
  // The memory of this process holds the secrets anyway.
  const ledger = new Ledger({ ...ledgerSettings, kernel, keyringOf: undefined });
  return {
    bucketOf: ownBudgets(config),
    ledger,
    notReady: () => [],
    close: () => ledger.close(),
  };
}

async function sqliteStores(
  config: Config,
  directory: string,
  ledgerSettings: LedgerSettings,
  log: Logger,
): Promise<Stores> {
  const thread = await openStoreThread({
    directory,
    onStateChange(trouble) {
      if (trouble === undefined) log.info("DATA_DIR works again");
      else {
        log.error(
          { reason: trouble },
          "DATA_DIR fails: callbacks are answered 503, calls with an Idempotency-Key are refused; retrying. If the disk is full, free space",
        );
      }
    },
  }).catch((error) => {
    throw error instanceof StoreRefused ? new ConfigError("DATA_DIR", error.message) : error;
  });
  log.info({ directory }, "state is kept in DATA_DIR, which this process uses alone");
  const ledger = new LedgerWithFallback({
    ...{ ...ledgerSettings, kernel: createSqliteKernel({ ...ledgerSettings, thread }) },
    // Only this process uses the disk: while it takes no writes, calls are barred by what it holds.
    ...{ isAway: () => true, readsGoOn: true, answerMs: diskAnswerMs },
  });
  await Promise.all([...config.accounts.keys()].map((account) => ledger.endLeases(account)));
  return {
    bucketOf: ownBudgets(config),
    ledger,
    async close() {
      await ledger.close();
      await thread.close();
    },
    notReady() {
      return thread.trouble === undefined ? [] : [`DATA_DIR fails: ${thread.trouble}`];
    },
  };
}

/** Without Redis each process has the whole rate budget. */
function ownBudgets({ rateLimit }: Config): Stores["bucketOf"] {
  return (account, report) => new QueuedBucket({ ...rateLimit, account, report });
}

/** Longer than the store's thread waits for the disk: its own error says more. */
const diskAnswerMs = 10_000;
