import { readFileSync } from "node:fs";
import { isIPv4, isIPv6 } from "node:net";
import { z } from "zod";
import type { AuthOptions, KeySetPlace } from "./auth/create-authentication.ts";
import { readTracing } from "./config-tracing.ts";
import {
  type Address,
  address,
  audience,
  authModes,
  boolean,
  documentMap,
  duration,
  durationOrZero,
  heartbeat,
  httpUrl,
  issuer,
  keySetUrl,
  login,
  logLevel,
  merchants,
  origins,
  password,
  path,
  redisPrefix,
  redisUrls,
  share,
  watchSecret,
  watchSecrets,
  wholeNumber,
} from "./config-values.ts";
import { Secret } from "./secret.ts";
import type { TlsPaths } from "./tls-files.ts";
import type { TracingSettings } from "./tracing/settings.ts";
import type { MerchantAccount } from "./upstream/upstream.ts";

export type { Address };

/** Everything that the environment says, checked. Nobody else reads `process.env`. */
export interface Config {
  readonly publicAddress: Address;
  readonly rpcAddress: Address;
  readonly adminAddress: Address;
  /** Files of the rpc listener; without them it is cleartext. */
  readonly tls?: TlsPaths;
  readonly rpcConnections: RpcConnections;
  /** Set when there is no UPSTREAM_URL: the emulator runs inside the process. */
  readonly sandboxAddress?: Address;
  /** By name. In sandbox mode the url of `default` is empty until the emulator listens. */
  readonly accounts: ReadonlyMap<string, MerchantAccount>;
  readonly upstreamTimeoutMs: number;
  /** How the upstream reaches the public listener; without it, that listener's own address. */
  readonly publicUrl?: string;
  readonly redis?: { readonly url: Secret; readonly prefix: string; readonly minReplicas: number };
  readonly rateLimit: {
    readonly initialLimit: number;
    readonly reserve: number;
    readonly maxWaitMs: number;
  };
  readonly eventRetentionMs: number;
  readonly auth: AuthOptions;
  /** Of both kinds of callers; undefined: the defaults of `core/stream-limits.ts`. */
  readonly maxStreamsPerCaller?: number;
  /** Calls in flight at once; undefined: none is refused. */
  readonly maxConcurrentCalls?: number;
  /** Of each listener; undefined: no limit. */
  readonly maxConnections?: number;
  readonly maxConnectionsPerAddress?: number;
  readonly watchTokenSecret?: Secret;
  /** Tokens signed with these are still good. */
  readonly watchTokenPreviousSecrets: readonly Secret[];
  readonly corsOrigins: readonly string[];
  /** Whether the GraphQL schema may be asked for. */
  readonly graphqlIntrospection: boolean;
  /** GraphQL documents by their ids, and whether all others are refused. */
  readonly trustedDocuments?: {
    readonly documents: ReadonlyMap<string, string>;
    readonly only: boolean;
  };
  /** Undefined when reconciliation is off. */
  readonly reconcileAfterMs?: number;
  /** What is not settled by then is an operator's. */
  readonly reconcileGiveUpMs: number;
  readonly shutdown: ShutdownTimes;
  /** Undefined when nothing is traced. */
  readonly tracing?: TracingSettings;
  /** Silence on a live connection after which it is broken, and a peer is asked for. */
  readonly heartbeatMs: number;
  readonly logLevel: string;
  readonly production: boolean;
}

/** How the rpc listener keeps its connections, in milliseconds; 0: never. */
export interface RpcConnections {
  readonly maxConnectionAgeMs: number;
  readonly connectionAgeGraceMs: number;
  readonly keepAliveIntervalMs: number;
  readonly keepAliveTimeoutMs: number;
}

export interface ShutdownTimes {
  /** Longest that all of it may take. */
  readonly timeoutMs: number;
  /** How long everything is served on after readiness turned, so that load balancers notice. */
  readonly delayMs: number;
  /** Longest time over which live streams are ended. */
  readonly spreadMs: number;
}

/** A variable that is wrong or missing: its name, what it got (never a secret), what is accepted. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  constructor(variable: string, message: string) {
    super(`${variable}: ${message}`);
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the configuration (contract, section 2).
 * @throws ConfigError for the first variable that is wrong or missing.
 */
export function readConfig(env: Environment): Config {
  const read = reader(env);
  const upstreamUrl = read.optional("UPSTREAM_URL", httpUrl);
  const merchantsFile = read.optional("MERCHANTS_FILE", z.string());
  const sandbox = upstreamUrl === undefined && merchantsFile === undefined;
  const production = env.NODE_ENV === "production";

  const publicAddress = read("PUBLIC_ADDR", address, "127.0.0.1:4000");
  const rpcAddress = read("RPC_ADDR", address, "127.0.0.1:4001");
  const adminAddress = read("ADMIN_ADDR", address, "127.0.0.1:4002");
  const sandboxAddress = read("SANDBOX_ADDR", address, sandboxDefaults.address);

  const modes = read("AUTH_MODE", authModes, sandbox ? "none" : undefined);
  const allowUnauthenticated = read("ALLOW_UNAUTHENTICATED", boolean, "false");
  if (modes.has("none") && !allowUnauthenticated) {
    for (const [variable, { host }] of Object.entries({
      PUBLIC_ADDR: publicAddress,
      RPC_ADDR: rpcAddress,
    })) {
      if (isLoopback(host)) continue;
      throw new ConfigError(
        "AUTH_MODE",
        `none is refused while ${variable} is not on loopback (${host}); give keys or jwt, or set ALLOW_UNAUTHENTICATED=true`,
      );
    }
  }

  const accounts = merchantsFile
    ? readMerchants(merchantsFile, upstreamUrl)
    : new Map([["default", defaultAccount(read, upstreamUrl)]]);

  const publicUrl = read.optional("PUBLIC_URL", httpUrl);
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
  const reconcileAfterMs = read("RECONCILE_AFTER", durationOrZero, "60s");
  const watchTokenSecret = read.optional("WATCH_TOKEN_SECRET", watchSecret);
  const previousWatchSecrets = read.optional("WATCH_TOKEN_PREVIOUS_SECRETS", watchSecrets) ?? [];
  if (previousWatchSecrets.length > 0 && watchTokenSecret === undefined) {
    throw new ConfigError("WATCH_TOKEN_SECRET", "is missing beside WATCH_TOKEN_PREVIOUS_SECRETS");
  }
  const tracing = readTracing(read.optional);
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
            minReplicas: read("REDIS_MIN_REPLICAS", wholeNumber(0, 100), "0"),
          },
        }
      : {}),
    rateLimit: {
      initialLimit: read("RATE_LIMIT_INITIAL", wholeNumber(1, 1_000_000), "10"),
      reserve: read("RATE_LIMIT_RESERVE", share, "0.2"),
      maxWaitMs: read("RATE_LIMIT_MAX_WAIT", duration, "2s"),
    },
    eventRetentionMs: read("EVENT_RETENTION", duration, "7d"),
    auth: readAuth(read, modes),
    ...read.some("maxStreamsPerCaller", "MAX_STREAMS_PER_CALLER", wholeNumber(1, 1_000_000)),
    ...readLimits(read),
    ...(watchTokenSecret ? { watchTokenSecret: new Secret(watchTokenSecret) } : {}),
    watchTokenPreviousSecrets: previousWatchSecrets.map((secret) => new Secret(secret)),
    corsOrigins: read("CORS_ORIGINS", origins, ""),
    graphqlIntrospection: read("GRAPHQL_INTROSPECTION", boolean, `${!production}`),
    ...readTrustedDocuments(read),
    ...(reconcileAfterMs > 0 ? { reconcileAfterMs } : {}),
    reconcileGiveUpMs: read("RECONCILE_GIVE_UP", duration, "24h"),
    shutdown: readShutdown(read),
    ...(tracing ? { tracing } : {}),
    heartbeatMs: read("HEARTBEAT_INTERVAL", heartbeat, "15s"),
    logLevel: read("LOG_LEVEL", logLevel, "info"),
    production,
  };
}

function readTls(read: Reader): Pick<Config, "tls"> {
  const certFile = read.optional("TLS_CERT_FILE", path);
  const keyFile = read.optional("TLS_KEY_FILE", path);
  const clientCaFile = read.optional("TLS_CLIENT_CA_FILE", path);
  if (!certFile && !keyFile && !clientCaFile) return {};
  if (certFile && keyFile) {
    return { tls: { certFile, keyFile, ...(clientCaFile ? { clientCaFile } : {}) } };
  }
  const missing = certFile ? "TLS_KEY_FILE" : "TLS_CERT_FILE";
  throw new ConfigError(missing, "is missing: TLS needs both TLS_CERT_FILE and TLS_KEY_FILE");
}

/** The parts of a shutdown leave time for the calls in flight. */
function readShutdown(read: Reader): ShutdownTimes {
  const timeoutMs = read("SHUTDOWN_TIMEOUT", duration, "10s");
  const delayMs = read("SHUTDOWN_DELAY", durationOrZero, "0");
  if (delayMs > timeoutMs / 2) {
    throw new ConfigError(
      "SHUTDOWN_DELAY",
      `got ${delayMs} ms, accepted is at most half of SHUTDOWN_TIMEOUT (${timeoutMs} ms): calls in flight need time after it`,
    );
  }
  return { timeoutMs, delayMs, spreadMs: read("SHUTDOWN_SPREAD", durationOrZero, "3s") };
}

/** Each mode that is asked for has all that it needs, so that nothing is left unchecked. */
function readAuth(read: Reader, modes: AuthOptions["modes"]): AuthOptions {
  return {
    modes,
    customerClaim: read("AUTH_CUSTOMER_CLAIM", z.string(), "customer_external_id"),
    ...(modes.has("keys") ? { apiKeysFile: read("API_KEYS_FILE", path) } : {}),
    ...(modes.has("jwt")
      ? {
          jwt: {
            keySet: readKeySet(read),
            issuer: read("AUTH_ISSUER", issuer),
            audience: read("AUTH_AUDIENCE", audience),
          },
        }
      : {}),
  };
}

/** 0 turns a limit off. */
function readLimits(read: Reader) {
  const limits = {
    maxConcurrentCalls: read("MAX_CONCURRENT_CALLS", wholeNumber(0, 1_000_000), "5000"),
    maxConnections: read("MAX_CONNECTIONS", wholeNumber(0, 1_000_000), "10000"),
    maxConnectionsPerAddress: read("MAX_CONNECTIONS_PER_ADDRESS", wholeNumber(0, 1_000_000), "0"),
  };
  return Object.fromEntries(Object.entries(limits).filter(([, most]) => most > 0)) as Partial<
    typeof limits
  >;
}

function readKeySet(read: Reader): KeySetPlace {
  const url = read.optional("AUTH_JWKS_URL", keySetUrl);
  const file = read.optional("AUTH_JWKS_FILE", path);
  if (url !== undefined && file !== undefined) {
    throw new ConfigError("AUTH_JWKS_FILE", "is given beside AUTH_JWKS_URL: give one of them");
  }
  if (file !== undefined) return { file };
  return { url: url ?? read("AUTH_JWKS_URL", keySetUrl) };
}

function readTrustedDocuments(read: Reader): Pick<Config, "trustedDocuments"> {
  const variable = "PERSISTED_DOCUMENTS_FILE";
  const file = read.optional(variable, path);
  const only = read("PERSISTED_ONLY", boolean, "false");
  if (file === undefined && only) {
    throw new ConfigError(variable, "is missing: PERSISTED_ONLY=true allows its documents alone");
  }
  if (file === undefined) return {};
  const map = documentMap.safeParse(jsonOf(variable, file));
  if (map.success) return { trustedDocuments: { documents: new Map(map.data), only } };
  throw new ConfigError(variable, `${file}: accepted is a JSON object of documents by their ids`);
}

/** What the emulator needs when it runs alone. */
export interface SandboxConfig {
  readonly address: Address;
  readonly login: string;
  readonly password: Secret;
  readonly logLevel: string;
}

/** @throws ConfigError for the first variable that is wrong. */
export function readSandboxConfig(env: Environment): SandboxConfig {
  const read = reader(env);
  return {
    address: read("SANDBOX_ADDR", address, sandboxDefaults.address),
    login: read("UPSTREAM_LOGIN", login, sandboxDefaults.login),
    password: new Secret(read("UPSTREAM_PASSWORD", password, sandboxDefaults.password)),
    logLevel: read("LOG_LEVEL", logLevel, "info"),
  };
}

const sandboxDefaults = {
  address: "127.0.0.1:4010",
  login: "sandbox",
  password: "sandbox-password",
} as const;

/** Whether a host name or address is reachable from this machine alone. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, "");
  if (isIPv4(bare)) return bare.startsWith("127.");
  if (isIPv6(bare)) return bare === "::1";
  return bare === "localhost" || bare.endsWith(".localhost");
}

interface Reader {
  <T>(variable: string, schema: z.ZodType<T, string>, fallback?: string): T;
  optional<T>(variable: string, schema: z.ZodType<T, string>): T | undefined;
  some<K extends string, T>(
    key: K,
    variable: string,
    schema: z.ZodType<T, string>,
  ): { [P in K]?: T };
}

function reader(env: Environment): Reader {
  const parse = <T>(variable: string, schema: z.ZodType<T, string>, text: string): T => {
    const result = schema.safeParse(text);
    if (result.success) return result.data;
    const accepted = result.error.issues.map((issue) => issue.message).join("; ");
    const got = isSecret(variable) ? "the value" : JSON.stringify(text);
    throw new ConfigError(variable, `got ${got}, accepted is ${accepted}`);
  };
  const optional = <T>(variable: string, schema: z.ZodType<T, string>): T | undefined => {
    const text = textOf(env, variable);
    return text === undefined ? undefined : parse(variable, schema, text);
  };
  const read = <T>(variable: string, schema: z.ZodType<T, string>, fallback?: string): T => {
    const text = textOf(env, variable) ?? fallback;
    if (text !== undefined) return parse(variable, schema, text);
    const probe = schema.safeParse("");
    const accepted = probe.success
      ? "a value"
      : probe.error.issues.map((i) => i.message).join("; ");
    throw new ConfigError(variable, `is missing, accepted is ${accepted}`);
  };
  const some = <K extends string, T>(key: K, variable: string, schema: z.ZodType<T, string>) => {
    const value = optional(variable, schema);
    return (value === undefined ? {} : { [key]: value }) as { [P in K]?: T };
  };
  return Object.assign(read, { optional, some });
}

/**
 * The text of one variable. An empty variable counts as not set. A secret or an address may stand in
 * a file instead.
 */
export function textOf(env: Environment, variable: string): string | undefined {
  const text = env[variable] === "" ? undefined : env[variable];
  if (!/_(PASSWORDS?|SECRETS?|URL)$/.test(variable)) return text;
  const file = env[`${variable}_FILE`];
  if (!file) return text;
  if (text !== undefined) {
    throw new ConfigError(variable, `is given twice: also as ${variable}_FILE`);
  }
  return fileText(`${variable}_FILE`, file).replace(/\r?\n$/, "");
}

function isSecret(variable: string): boolean {
  return /PASSWORD|SECRET|_URL$|^OTEL_EXPORTER_OTLP_.*(HEADERS|ENDPOINT)$/.test(variable);
}

function fileText(variable: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new ConfigError(
      variable,
      `${path} cannot be read (${(error as NodeJS.ErrnoException).code})`,
    );
  }
}

function jsonOf(variable: string, file: string): unknown {
  const text = fileText(variable, file);
  try {
    return JSON.parse(text);
  } catch {
    throw new ConfigError(variable, `${file}: is not JSON`);
  }
}

function defaultAccount(read: Reader, upstreamUrl: string | undefined): MerchantAccount {
  const sandbox = upstreamUrl === undefined;
  const previous = read("UPSTREAM_PREVIOUS_PASSWORDS", z.string(), "");
  return {
    name: "default",
    url: upstreamUrl ?? "",
    login: read("UPSTREAM_LOGIN", login, sandbox ? sandboxDefaults.login : undefined),
    password: new Secret(
      read("UPSTREAM_PASSWORD", password, sandbox ? sandboxDefaults.password : undefined),
    ),
    previousPasswords: previous
      .split(",")
      .filter((password) => password !== "")
      .map((password) => new Secret(password)),
  };
}

function readMerchants(
  path: string,
  upstreamUrl: string | undefined,
): ReadonlyMap<string, MerchantAccount> {
  const fail = (what: string): never => {
    throw new ConfigError("MERCHANTS_FILE", `${path}: ${what}`);
  };
  const json = jsonOf("MERCHANTS_FILE", path);
  const result = merchants.safeParse(json);
  if (!result.success) {
    const issue = result.error.issues[0];
    return fail(`${issue?.path.join(".") ?? ""}: ${issue?.message ?? "is wrong"}`);
  }
  const accounts = Object.entries(result.data).map(([name, merchant]) => {
    const url = merchant.url ?? upstreamUrl;
    if (url === undefined) return fail(`${name}: has no url, and UPSTREAM_URL is not set`);
    return {
      name,
      url,
      login: merchant.login,
      password: new Secret(merchant.password),
      previousPasswords: merchant.previous_passwords.map((p) => new Secret(p)),
    };
  });
  if (accounts.length === 0) return fail("names no merchant");
  return new Map(accounts.map((account) => [account.name, account]));
}
