import { z } from "zod";
import type { AuthOptions } from "../auth/create-authentication.ts";
import { isLoopback } from "../net/loopback.ts";
import type { TlsPaths } from "../net/tls-files.ts";
import { Secret } from "../secrets/secret.ts";
import type { DurationsSettings } from "../telemetry/durations/settings.ts";
import type { TracingSettings } from "../telemetry/tracing/settings.ts";
import type { MerchantAccount } from "../upstream/upstream.ts";
import { checkAccounts } from "./accounts.ts";
import { readAuth, readAuthModes } from "./auth.ts";
import { ConfigError } from "./config-error.ts";
import { readDataDirectory } from "./data-directory.ts";
import { readBufferedBytes, readLimits } from "./limits.ts";
import { defaultAccount, readMerchants } from "./merchant-accounts.ts";
import { readMetrics } from "./metrics.ts";
import { type Reader, reader } from "./reader.ts";
import { sandboxDefaults } from "./sandbox.ts";
import { readShutdown, type ShutdownTimes } from "./shutdown.ts";
import { readTls } from "./tls.ts";
import { readTracing } from "./tracing.ts";
import { readTrustedDocuments, type TrustedDocuments } from "./trusted-documents.ts";
import {
  type Address,
  address,
  baseUrl,
  boolean,
  duration,
  durationOrZero,
  hasFailover,
  heartbeat,
  logLevel,
  minReplicas,
  origins,
  redisPrefix,
  redisUrls,
  share,
  watchSecret,
  watchSecrets,
  wholeNumber,
  words,
} from "./values.ts";
import type { Environment } from "./variable.ts";

/** The gateway's configuration, checked. The gateway reads no environment variable elsewhere. */
export interface Config {
  readonly publicAddress: Address;
  readonly rpcAddress: Address;
  readonly adminAddress: Address;
  /** TLS files of the rpc listener; without them it is cleartext. */
  readonly tls?: TlsPaths;
  readonly rpcConnections: RpcConnections;
  /** Set without UPSTREAM_URL and MERCHANTS_FILE: the emulator runs inside the process. */
  readonly sandboxAddress?: Address;
  /** Accounts by name. In sandbox mode the url of `default` is empty: it is the emulator's. */
  readonly accounts: ReadonlyMap<string, MerchantAccount>;
  readonly upstreamTimeoutMs: number;
  /** URL at which the upstream reaches the public listener; default: the listener's own. */
  readonly publicUrl?: string;
  readonly redis?: {
    readonly url: Secret;
    readonly prefix: string;
    /** Replicas that must hold a write; `all`: every one that could be promoted. */
    readonly minReplicas: number | "all";
    /** Whether calls that move money are refused while Redis is away. */
    readonly requiredForMoney: boolean;
  };
  /** Directory of the embedded store; never beside `redis`. */
  readonly dataDirectory?: string;
  readonly rateLimit: {
    readonly initialLimit: number;
    readonly reserve: number;
    readonly maxWaitMs: number;
  };
  readonly eventRetentionMs: number;
  /** Statuses with which the service ends a payout, in lower case. */
  readonly payoutEnds: {
    readonly success: ReadonlySet<string>;
    readonly failure: ReadonlySet<string>;
  };
  readonly auth: AuthOptions;
  /** For callers of every kind; undefined: the defaults of `core/stream-limits.ts`. */
  readonly maxStreamsPerCaller?: number;
  /** Bytes that all bodies and unread answers may hold together. */
  readonly maxBufferedBytes: number;
  /** Calls in flight at once; undefined: no limit. */
  readonly maxConcurrentCalls?: number;
  /** Connections of each listener; undefined: no limit. */
  readonly maxConnections?: number;
  readonly maxConnectionsPerAddress?: number;
  readonly watchTokenSecret?: Secret;
  /** Watch tokens signed with these are still valid. */
  readonly watchTokenPreviousSecrets: readonly Secret[];
  readonly corsOrigins: readonly string[];
  /** Whether GraphQL introspection is allowed. */
  readonly graphqlIntrospection: boolean;
  /** GraphQL documents by their ids, and whether all others are refused. */
  readonly trustedDocuments?: TrustedDocuments;
  /** Undefined when reconciliation is off. */
  readonly reconcileAfterMs?: number;
  /** A call that is not settled after this time is flagged for an operator. */
  readonly reconcileGiveUpMs: number;
  readonly shutdown: ShutdownTimes;
  /** Undefined when no metrics are sent to a collector. */
  readonly metrics?: DurationsSettings;
  /** Undefined when nothing is traced. */
  readonly tracing?: TracingSettings;
  /** Longest silence on an event stream, and how often a WebSocket is pinged. */
  readonly heartbeatMs: number;
  readonly logLevel: string;
  readonly production: boolean;
}

/** Connections of the rpc listener, in milliseconds; 0 turns the age limit or the pings off. */
export interface RpcConnections {
  readonly maxConnectionAgeMs: number;
  readonly connectionAgeGraceMs: number;
  readonly keepAliveIntervalMs: number;
  readonly keepAliveTimeoutMs: number;
}

/**
 * Reads the configuration.
 * @throws ConfigError for the first variable that is wrong or missing.
 */
export function readConfig(env: Environment): Config {
  const read = reader(env);
  const upstreamUrl = read.optional("UPSTREAM_URL", baseUrl);
  const merchantsFile = read.optional("MERCHANTS_FILE", z.string());
  const sandbox = upstreamUrl === undefined && merchantsFile === undefined;
  const production = env.NODE_ENV === "production";

  const publicAddress = read("PUBLIC_ADDR", address, "127.0.0.1:4000");
  const rpcAddress = read("RPC_ADDR", address, "127.0.0.1:4001");
  const adminAddress = read("ADMIN_ADDR", address, "127.0.0.1:4002");
  const sandboxAddress = read("SANDBOX_ADDR", address, sandboxDefaults.address);

  const listeners = { PUBLIC_ADDR: publicAddress, RPC_ADDR: rpcAddress };
  const modes = readAuthModes(read, sandbox, listeners);

  const accounts = merchantsFile
    ? readMerchants(merchantsFile, upstreamUrl)
    : new Map([["default", defaultAccount(read, upstreamUrl)]]);

  checkAccounts(read, accounts, merchantsFile);

  const publicUrl = read.optional("PUBLIC_URL", baseUrl);
  if (publicUrl === undefined) {
    for (const account of accounts.values()) {
      if (account.url === "" || isLoopback(new URL(account.url).hostname)) continue;
      throw new ConfigError(
        "PUBLIC_URL",
        "is missing: the upstream sends its callbacks there; accepted is an http or https URL that reaches the public listener",
      );
    }
  }

  const redisUrl = read.optional("REDIS_URL", redisUrls);
  const dataDirectory = readDataDirectory(read, { sandbox, redis: redisUrl !== undefined });
  const reconcileAfterMs = read("RECONCILE_AFTER", durationOrZero, "60s");
  const watchTokenSecret = read.optional("WATCH_TOKEN_SECRET", watchSecret);
  const previousWatchSecrets = read.optional("WATCH_TOKEN_PREVIOUS_SECRETS", watchSecrets) ?? [];
  if (previousWatchSecrets.length > 0 && watchTokenSecret === undefined) {
    throw new ConfigError("WATCH_TOKEN_SECRET", "is missing beside WATCH_TOKEN_PREVIOUS_SECRETS");
  }
  const tracing = readTracing(read.optional);
  const metrics = readMetrics(read.optional);
  return {
    publicAddress,
    rpcAddress,
    adminAddress,
    ...readTls(read),
    rpcConnections: {
      maxConnectionAgeMs: read("RPC_MAX_CONNECTION_AGE", durationOrZero, "0"),
      connectionAgeGraceMs: read("RPC_MAX_CONNECTION_AGE_GRACE", duration, "1m"),
      keepAliveIntervalMs: read("RPC_KEEPALIVE_INTERVAL", durationOrZero, "30s"),
      keepAliveTimeoutMs: read("RPC_KEEPALIVE_TIMEOUT", duration, "20s"),
    },
    ...(sandbox ? { sandboxAddress } : {}),
    accounts,
    upstreamTimeoutMs: read("UPSTREAM_TIMEOUT", duration, "30s"),
    ...(publicUrl ? { publicUrl } : {}),
    ...(redisUrl
      ? {
          redis: {
            url: new Secret(redisUrl),
            prefix: read("REDIS_PREFIX", redisPrefix, "pgw"),
            minReplicas: read(
              "REDIS_MIN_REPLICAS",
              minReplicas,
              hasFailover(redisUrl) ? "all" : "0",
            ),
            requiredForMoney: read("REDIS_REQUIRED_FOR_MONEY", boolean, "false"),
          },
        }
      : {}),
    ...(dataDirectory === undefined ? {} : { dataDirectory }),
    rateLimit: {
      initialLimit: read("RATE_LIMIT_INITIAL", wholeNumber(1, 1_000_000), "10"),
      reserve: read("RATE_LIMIT_RESERVE", share, "0.2"),
      maxWaitMs: read("RATE_LIMIT_MAX_WAIT", duration, "2s"),
    },
    eventRetentionMs: read("EVENT_RETENTION", duration, "7d"),
    payoutEnds: readPayoutEnds(read),
    auth: readAuth(read, modes),
    ...read.some("maxStreamsPerCaller", "MAX_STREAMS_PER_CALLER", wholeNumber(1, 1_000_000)),
    ...readLimits(read),
    maxBufferedBytes: readBufferedBytes(read),
    ...(watchTokenSecret ? { watchTokenSecret: new Secret(watchTokenSecret) } : {}),
    watchTokenPreviousSecrets: previousWatchSecrets.map((secret) => new Secret(secret)),
    corsOrigins: read("CORS_ORIGINS", origins, ""),
    graphqlIntrospection: read("GRAPHQL_INTROSPECTION", boolean, `${!production}`),
    ...readTrustedDocuments(read),
    ...(reconcileAfterMs > 0 ? { reconcileAfterMs } : {}),
    reconcileGiveUpMs: read("RECONCILE_GIVE_UP", duration, "24h"),
    shutdown: readShutdown(read),
    ...(tracing ? { tracing } : {}),
    ...(metrics ? { metrics } : {}),
    heartbeatMs: read("HEARTBEAT_INTERVAL", heartbeat, "15s"),
    logLevel: read("LOG_LEVEL", logLevel, "info"),
    production,
  };
}

/** A status must not be in both lists: it would not tell whether a payout succeeded. */
function readPayoutEnds(read: Reader): Config["payoutEnds"] {
  const success = new Set(read("PAYOUT_SUCCESS_STATUSES", words, "success"));
  const failure = new Set(read("PAYOUT_FAILURE_STATUSES", words, "failure"));
  const both = [...success].find((word) => failure.has(word));
  if (both === undefined) return { success, failure };
  throw new ConfigError(
    "PAYOUT_FAILURE_STATUSES",
    `has ${JSON.stringify(both)}, as PAYOUT_SUCCESS_STATUSES does`,
  );
}
