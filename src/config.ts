import { readFileSync } from "node:fs";
import { isIPv4, isIPv6 } from "node:net";
import { z } from "zod";
import { Secret } from "./secret.ts";
import type { MerchantAccount } from "./upstream/upstream.ts";

/** Where a listener listens. Port 0 lets the system pick one. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Everything that the environment says, checked. Nobody else reads `process.env`. */
export interface Config {
  readonly publicAddress: Address;
  readonly rpcAddress: Address;
  readonly adminAddress: Address;
  /** PEM texts for the rpc listener. */
  readonly tls?: { readonly cert: string; readonly key: string };
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
  readonly auth: {
    readonly modes: ReadonlySet<"none" | "keys" | "jwt">;
    readonly apiKeysFile?: string;
    readonly jwksUrl?: string;
    readonly jwksFile?: string;
    readonly issuer?: string;
    readonly audience?: string;
    readonly customerClaim: string;
  };
  readonly watchTokenSecret?: Secret;
  readonly corsOrigins: readonly string[];
  /** Undefined when reconciliation is off. */
  readonly reconcileAfterMs?: number;
  /** What is not settled by then is an operator's. */
  readonly reconcileGiveUpMs: number;
  readonly shutdownTimeoutMs: number;
  readonly logLevel: string;
  readonly production: boolean;
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

  const certFile = read.optional("TLS_CERT_FILE", z.string());
  const keyFile = read.optional("TLS_KEY_FILE", z.string());
  if ((certFile === undefined) !== (keyFile === undefined)) {
    const missing = certFile === undefined ? "TLS_CERT_FILE" : "TLS_KEY_FILE";
    throw new ConfigError(missing, "is missing: TLS needs both TLS_CERT_FILE and TLS_KEY_FILE");
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
  return {
    publicAddress,
    rpcAddress,
    adminAddress,
    ...(certFile && keyFile
      ? {
          tls: {
            cert: fileText("TLS_CERT_FILE", certFile),
            key: fileText("TLS_KEY_FILE", keyFile),
          },
        }
      : {}),
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
    auth: {
      modes,
      ...read.some("apiKeysFile", "API_KEYS_FILE", z.string()),
      ...read.some("jwksUrl", "AUTH_JWKS_URL", httpUrl),
      ...read.some("jwksFile", "AUTH_JWKS_FILE", z.string()),
      ...read.some("issuer", "AUTH_ISSUER", z.string()),
      ...read.some("audience", "AUTH_AUDIENCE", z.string()),
      customerClaim: read("AUTH_CUSTOMER_CLAIM", z.string(), "customer_external_id"),
    },
    ...(watchTokenSecret ? { watchTokenSecret: new Secret(watchTokenSecret) } : {}),
    corsOrigins: read("CORS_ORIGINS", origins, ""),
    ...(reconcileAfterMs > 0 ? { reconcileAfterMs } : {}),
    reconcileGiveUpMs: read("RECONCILE_GIVE_UP", duration, "24h"),
    shutdownTimeoutMs: read("SHUTDOWN_TIMEOUT", duration, "10s"),
    logLevel: read("LOG_LEVEL", logLevel, "info"),
    production: env.NODE_ENV === "production",
  };
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
  <T>(variable: string, schema: z.ZodType<T, string>, fallback: string | undefined): T;
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

/** An empty variable counts as not set. A secret or an address may stand in a file instead. */
function textOf(env: Environment, variable: string): string | undefined {
  const text = env[variable] === "" ? undefined : env[variable];
  if (!/_(PASSWORD|SECRET|URL)$/.test(variable)) return text;
  const file = env[`${variable}_FILE`];
  if (!file) return text;
  if (text !== undefined) {
    throw new ConfigError(variable, `is given twice: also as ${variable}_FILE`);
  }
  return fileText(`${variable}_FILE`, file).replace(/\r?\n$/, "");
}

function isSecret(variable: string): boolean {
  return /PASSWORD|SECRET|_URL$/.test(variable);
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
  let json: unknown;
  try {
    json = JSON.parse(fileText("MERCHANTS_FILE", path));
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    return fail("is not JSON");
  }
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

const nonEmpty = (what: string) => z.string().min(1, what);
const login = nonEmpty("the merchant's login").regex(/^[^:]*$/, "a login without a colon");
const password = nonEmpty("the merchant's API password");
const httpUrl = z
  .string()
  .refine(
    (text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol),
    "an absolute http or https URL",
  )
  .transform((text) => text.replace(/\/+$/, ""));

const merchants = z.record(
  z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "a name of letters, digits, _ and -, at most 64"),
  z.strictObject({
    login,
    password: nonEmpty("a password"),
    previous_passwords: z.array(nonEmpty("a password")).default([]),
    url: httpUrl.optional(),
  }),
);

const boolean = z
  .string()
  .regex(/^(true|false)$/, "true or false")
  .transform((text) => text === "true");

const address = z.string().transform((text, context): Address => {
  const match = /^(?:\[([^\]]+)\]|([^:\s]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host !== undefined && port <= 65_535) return { host, port };
  context.addIssue("host:port, such as 127.0.0.1:4000 or [::1]:4000");
  return z.NEVER;
});

const unitsMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
/** The longest time that a timer can wait for is 2^31 - 1 ms; durations beyond ten years are typos. */
const longestMs = 3_650 * unitsMs.d;

function durationMs(text: string): number | undefined {
  const match = /^(\d{1,12})(ms|s|m|h|d)$/.exec(text);
  if (!match) return undefined;
  const ms = Number(match[1]) * unitsMs[match[2] as keyof typeof unitsMs];
  return ms <= longestMs ? ms : undefined;
}

const duration = z.string().transform((text, context): number => {
  const ms = durationMs(text);
  if (ms !== undefined && ms > 0) return ms;
  context.addIssue("a whole number above 0 with a unit, ms, s, m, h or d, such as 500ms or 7d");
  return z.NEVER;
});

const durationOrZero = z.string().transform((text, context): number => {
  const ms = text === "0" ? 0 : durationMs(text);
  if (ms !== undefined) return ms;
  context.addIssue("0 for never, or a whole number with a unit, ms, s, m, h or d, such as 60s");
  return z.NEVER;
});

const wholeNumber = (least: number, most: number) =>
  z
    .string()
    .refine(
      (text) => /^\d{1,9}$/.test(text) && Number(text) >= least && Number(text) <= most,
      `a whole number from ${least} to ${most}`,
    )
    .transform(Number);

const share = z
  .string()
  .refine(
    (text) => /^(0|0?\.\d+|0\.\d+)$/.test(text),
    "a share of at least 0 and below 1, such as 0.2",
  )
  .transform(Number);

const authModes = z.string().transform((text, context): ReadonlySet<"none" | "keys" | "jwt"> => {
  const modes = new Set(text.split(",").map((mode) => mode.trim()));
  const known = [...modes].every((mode) => ["none", "keys", "jwt"].includes(mode));
  if (known && !(modes.has("none") && modes.size > 1)) return modes as Set<"none" | "keys" | "jwt">;
  context.addIssue("none, or keys, or jwt, or keys,jwt");
  return z.NEVER;
});

const watchSecret = z
  .string()
  .refine((text) => Buffer.byteLength(text) >= 32, "a secret of at least 32 bytes");

const origins = z.string().transform((text, context): readonly string[] => {
  const all = text
    .split(",")
    .map((origin) => origin.trim())
    .filter((origin) => origin !== "");
  if (all.every((origin) => URL.canParse(origin) && new URL(origin).origin === origin)) return all;
  context.addIssue("origins joined by commas, such as https://shop.example");
  return z.NEVER;
});

const redisPrefix = z
  .string()
  .regex(/^[A-Za-z0-9_:.-]{1,64}$/, "letters, digits and _ : . -, at most 64");

const redisUrls = z
  .string()
  .refine(
    (text) =>
      /^redis\+sentinel:\/\/[^/\s]+\/[^/\s]+$/.test(text) ||
      text.split(",").every((node) => /^rediss?:\/\/[^\s]+$/.test(node.trim())),
    "redis:// or rediss://, several of them joined by commas for a cluster, or redis+sentinel://host:port,host:port/master-name",
  );

const logLevel = z
  .string()
  .regex(
    /^(trace|debug|info|warn|error|fatal|silent)$/,
    "trace, debug, info, warn, error, fatal or silent",
  );
