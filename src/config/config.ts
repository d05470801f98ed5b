import type { AuthOptions } from "../auth/create-authentication.ts";
import type { TlsPaths } from "../net/tls-files.ts";
import { Secret } from "../secrets/secret.ts";
import { type Environment, readVariables } from "./environment.ts";
import { metricsOf, tracingOf } from "./opentelemetry.ts";
import { accountsOf, rules } from "./rules.ts";
import { inSandbox, type Name, type Values, variables } from "./variables.ts";

/** The gateway's configuration, checked. The gateway reads no environment variable elsewhere. */
export type Config = ReturnType<typeof readConfig>;
export type SandboxConfig = ReturnType<typeof readSandboxConfig>;

/**
 * Reads the configuration. `variables.ts` says what each variable is for.
 * @throws ConfigError for all variables that are wrong or missing
 */
export function readConfig(env: Environment) {
  const values = readVariables(env, Object.keys(variables) as Name[], rules);
  const documents = values.PERSISTED_DOCUMENTS_FILE?.content;
  return {
    publicAddress: values.PUBLIC_ADDR,
    rpcAddress: values.RPC_ADDR,
    adminAddress: values.ADMIN_ADDR,
    adminKey: values.ADMIN_KEY === undefined ? undefined : new Secret(values.ADMIN_KEY),
    /** TLS files of the rpc listener; without them it is cleartext. */
    tls: tlsOf(values),
    /** Connections of the rpc listener; 0 turns the age limit or the pings off. */
    rpcConnections: {
      maxConnectionAgeMs: values.RPC_MAX_CONNECTION_AGE,
      connectionAgeGraceMs: values.RPC_MAX_CONNECTION_AGE_GRACE,
      keepAliveIntervalMs: values.RPC_KEEPALIVE_INTERVAL,
      keepAliveTimeoutMs: values.RPC_KEEPALIVE_TIMEOUT,
    },
    /** Set without UPSTREAM_URL and MERCHANTS_FILE: the emulator runs inside the process. */
    sandboxAddress: inSandbox(values) ? values.SANDBOX_ADDR : undefined,
    /** Accounts by name. In sandbox mode the url of `default` is empty: it is the emulator's. */
    accounts: accountsOf(values),
    upstreamTimeoutMs: values.UPSTREAM_TIMEOUT,
    /** URL at which the upstream reaches the public listener; default: the listener's own. */
    publicUrl: values.PUBLIC_URL,
    redis:
      values.REDIS_URL === undefined
        ? undefined
        : {
            url: new Secret(values.REDIS_URL),
            prefix: values.REDIS_PREFIX,
            tls: redisTlsOf(values),
            minReplicas: values.REDIS_MIN_REPLICAS,
            requiredForMoney: values.REDIS_REQUIRED_FOR_MONEY,
          },
    dataDirectory: values.DATA_DIR,
    rateLimit: {
      initialLimit: values.RATE_LIMIT_INITIAL,
      reserve: values.RATE_LIMIT_RESERVE,
      maxWaitMs: values.RATE_LIMIT_MAX_WAIT,
    },
    eventRetentionMs: values.EVENT_RETENTION,
    /** Statuses with which the service ends a payout, in lower case. */
    payoutEnds: {
      success: values.PAYOUT_SUCCESS_STATUSES,
      failure: values.PAYOUT_FAILURE_STATUSES,
    },
    auth: authOf(values),
    /** For callers of every kind; undefined: the defaults of `core/stream-limits.ts`. */
    maxStreamsPerCaller: values.MAX_STREAMS_PER_CALLER,
    maxBufferedBytes: values.MAX_BUFFERED_BYTES,
    /** Calls in flight at once; undefined: no limit. */
    maxConcurrentCalls: values.MAX_CONCURRENT_CALLS || undefined,
    /** Connections of each listener; undefined: no limit. */
    maxConnections: values.MAX_CONNECTIONS || undefined,
    maxConnectionsPerAddress: values.MAX_CONNECTIONS_PER_ADDRESS || undefined,
    watchTokenSecret: values.WATCH_TOKEN_SECRET ? new Secret(values.WATCH_TOKEN_SECRET) : undefined,
    watchTokenPreviousSecrets: values.WATCH_TOKEN_PREVIOUS_SECRETS.map((text) => new Secret(text)),
    corsOrigins: values.CORS_ORIGINS,
    graphqlIntrospection: values.GRAPHQL_INTROSPECTION,
    graphqlSubgraph: values.GRAPHQL_SUBGRAPH,
    /** GraphQL documents by their ids, and whether all others are refused. */
    trustedDocuments: documents && {
      documents: new Map(Object.entries(documents)),
      only: values.PERSISTED_ONLY,
    },
    /** Undefined when reconciliation is off. */
    reconcileAfterMs: values.RECONCILE_AFTER || undefined,
    reconcileGiveUpMs: values.RECONCILE_GIVE_UP,
    shutdown: {
      timeoutMs: values.SHUTDOWN_TIMEOUT,
      delayMs: values.SHUTDOWN_DELAY,
      spreadMs: values.SHUTDOWN_SPREAD,
    },
    /** Undefined when no metrics are sent to a collector. */
    metrics: metricsOf(values),
    /** Undefined when nothing is traced. */
    tracing: tracingOf(values),
    heartbeatMs: values.HEARTBEAT_INTERVAL,
    logLevel: values.LOG_LEVEL,
    /** Undefined: what suits standard output. */
    logFormat: values.LOG_FORMAT,
    logExternalIds: values.LOG_EXTERNAL_IDS,
    production: values.NODE_ENV === "production",
  };
}

/** The variables by which Redis is reached. */
export const redisVariables = [
  "REDIS_URL",
  "REDIS_TLS_CA_FILE",
  "REDIS_TLS_CERT_FILE",
  "REDIS_TLS_KEY_FILE",
] as const;

export function redisTlsOf(values: Pick<Values, (typeof redisVariables)[number]>) {
  return {
    caFile: values.REDIS_TLS_CA_FILE,
    certFile: values.REDIS_TLS_CERT_FILE,
    keyFile: values.REDIS_TLS_KEY_FILE,
  };
}

function tlsOf(values: Values): TlsPaths | undefined {
  const { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile } = values;
  if (certFile === undefined || keyFile === undefined) return undefined;
  return { certFile, keyFile, clientCaFile: values.TLS_CLIENT_CA_FILE };
}

function authOf(values: Values): AuthOptions {
  const { AUTH_MODE: modes, AUTH_JWKS_URL: url = "", AUTH_JWKS_FILE: file } = values;
  return {
    modes,
    customerClaim: values.AUTH_CUSTOMER_CLAIM,
    serviceClaim: values.AUTH_SERVICE_CLAIM,
    apiKeysFile: modes.has("keys") ? values.API_KEYS_FILE : undefined,
    jwt: modes.has("jwt")
      ? {
          keySet: file === undefined ? { url } : { file },
          issuer: values.AUTH_ISSUER,
          audience: values.AUTH_AUDIENCE,
        }
      : undefined,
  };
}

/**
 * Reads the configuration of the emulator as a process of its own.
 * @throws ConfigError for all variables that are wrong
 */
export function readSandboxConfig(env: Environment) {
  const values = readVariables(
    { ...env, UPSTREAM_URL: undefined, UPSTREAM_URL_FILE: undefined, MERCHANTS_FILE: undefined },
    ["SANDBOX_ADDR", "UPSTREAM_LOGIN", "UPSTREAM_PASSWORD", "LOG_LEVEL", "LOG_FORMAT"],
  );
  return {
    address: values.SANDBOX_ADDR,
    login: values.UPSTREAM_LOGIN,
    password: new Secret(values.UPSTREAM_PASSWORD),
    logLevel: values.LOG_LEVEL,
    logFormat: values.LOG_FORMAT,
  };
}
