import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { inspect } from "node:util";
import { type Config, readConfig } from "../../src/config/config.ts";
import { unknownVariables } from "../../src/config/unknown-variables.ts";
import { type Variable, variables } from "../../src/config/variables.ts";
import { ConfigError } from "../../src/errors.ts";
import { directory } from "../stores/sqlite/directories.ts";

const dir = directory({ after });

function file(name: string, text: string): string {
  const path = join(dir, name);
  writeFileSync(path, text);
  return path;
}

const live = {
  UPSTREAM_URL: "http://127.0.0.1:9/",
  UPSTREAM_LOGIN: "shop",
  UPSTREAM_PASSWORD: "p",
  AUTH_MODE: "none",
  ALLOW_VOLATILE: "true",
};

test("REDIS_MIN_REPLICAS is all by default if a replica can be promoted, else 0", () => {
  const of = (url: string, value = "") =>
    readConfig({ ...live, REDIS_URL: url, REDIS_MIN_REPLICAS: value }).redis?.minReplicas;
  assert.equal(of("redis+sentinel://127.0.0.1:1/x"), "all");
  assert.equal(of("rediss+sentinel://127.0.0.1:1/x"), "all");
  assert.equal(of("redis://127.0.0.1:1,redis://127.0.0.1:2"), "all");
  assert.equal(of("redis://127.0.0.1:1"), 0);
  assert.equal(of("redis://127.0.0.1:1", "all"), "all");
  assert.equal(of("redis+sentinel://127.0.0.1:1/x", "2"), 2);
  const redis = { ...live, REDIS_URL: "redis://127.0.0.1" };
  refused(
    { ...redis, REDIS_MIN_REPLICAS: "most" },
    /^REDIS_MIN_REPLICAS: .*most.*all, or a whole number from 0 to 100/,
  );
  refused({ ...redis, REDIS_REQUIRED_FOR_MONEY: "1" }, /^REDIS_REQUIRED_FOR_MONEY.*true or false/);
});

test("a real upstream needs DATA_DIR, REDIS_URL or ALLOW_VOLATILE=true", () => {
  const { ALLOW_VOLATILE: _, ...real } = live;
  refused(real, /^DATA_DIR: is missing, and so is REDIS_URL: .*ALLOW_VOLATILE=true/);
  refused({ ...real, ALLOW_VOLATILE: "false" }, /^DATA_DIR/);
  refused({ ...real, ALLOW_VOLATILE: "yes" }, /^ALLOW_VOLATILE: .*true or false/);
  const merchants = file("volatile.json", '{"shop":{"login":"l","password":"p"}}');
  const several = { ...live, MERCHANTS_FILE: merchants, ALLOW_VOLATILE: "" };
  refused(several, /^DATA_DIR/);
  assert.equal(readConfig({ ...real, DATA_DIR: "/data" }).dataDirectory, "/data");
  assert.ok(readConfig({ ...real, REDIS_URL: "redis://127.0.0.1" }).redis);
  assert.equal(readConfig(live).dataDirectory, undefined);
  refused({ ...live, DATA_DIR: "/data", REDIS_URL: "redis://127.0.0.1" }, /^DATA_DIR: .*REDIS_URL/);
});

const hour = 3_600_000;
const loopback = (port: number) => ({ host: "127.0.0.1", port });

/** What a variable is by default, and with a value. */
const single: [
  name: string,
  of: (config: Config) => unknown,
  byDefault: unknown,
  value: string,
  read: unknown,
][] = [
  ["PUBLIC_ADDR", (c) => c.publicAddress, loopback(4000), "[::1]:1", { host: "::1", port: 1 }],
  ["RPC_ADDR", (c) => c.rpcAddress, loopback(4001), "127.0.0.1:0", loopback(0)],
  ["ADMIN_ADDR", (c) => c.adminAddress, loopback(4002), "127.0.0.1:0", loopback(0)],
  ["SANDBOX_ADDR", (c) => c.sandboxAddress, loopback(4010), "127.0.0.1:0", loopback(0)],
  ["DATA_DIR", (c) => c.dataDirectory, undefined, "/data", "/data"],
  ["UPSTREAM_TIMEOUT", (c) => c.upstreamTimeoutMs, 30_000, "250ms", 250],
  ["RATE_LIMIT_INITIAL", (c) => c.rateLimit.initialLimit, 10, "50", 50],
  ["RATE_LIMIT_RESERVE", (c) => c.rateLimit.reserve, 0.2, "0.5", 0.5],
  ["RATE_LIMIT_MAX_WAIT", (c) => c.rateLimit.maxWaitMs, 2_000, "3s", 3_000],
  ["EVENT_RETENTION", (c) => c.eventRetentionMs, 7 * 24 * hour, "5d", 5 * 24 * hour],
  ["RECONCILE_AFTER", (c) => c.reconcileAfterMs, 60_000, "0", undefined],
  ["SHUTDOWN_TIMEOUT", (c) => c.shutdown.timeoutMs, 10_000, "4h", 4 * hour],
  ["SHUTDOWN_DELAY", (c) => c.shutdown.delayMs, 0, "5s", 5_000],
  ["SHUTDOWN_SPREAD", (c) => c.shutdown.spreadMs, 3_000, "0", 0],
  ["HEARTBEAT_INTERVAL", (c) => c.heartbeatMs, 15_000, "3m", 180_000],
  ["RPC_MAX_CONNECTION_AGE", (c) => c.rpcConnections.maxConnectionAgeMs, 0, "30m", hour / 2],
  [
    "RPC_MAX_CONNECTION_AGE_GRACE",
    (c) => c.rpcConnections.connectionAgeGraceMs,
    60_000,
    "5s",
    5_000,
  ],
  ["RPC_KEEPALIVE_INTERVAL", (c) => c.rpcConnections.keepAliveIntervalMs, 30_000, "0", 0],
  ["RPC_KEEPALIVE_TIMEOUT", (c) => c.rpcConnections.keepAliveTimeoutMs, 20_000, "5s", 5_000],
  ["AUTH_CUSTOMER_CLAIM", (c) => c.auth.customerClaim, "customer_external_id", "sub", "sub"],
  ["AUTH_SERVICE_CLAIM", (c) => c.auth.serviceClaim, "client_id", "azp", "azp"],
  ["GRAPHQL_SUBGRAPH", (c) => c.graphqlSubgraph, false, "true", true],
  ["GRAPHQL_INTROSPECTION", (c) => c.graphqlIntrospection, true, "false", false],
  ["MAX_STREAMS_PER_CALLER", (c) => c.maxStreamsPerCaller, undefined, "50", 50],
  ["MAX_CONCURRENT_CALLS", (c) => c.maxConcurrentCalls, 5_000, "0", undefined],
  ["MAX_CONNECTIONS", (c) => c.maxConnections, 10_000, "0", undefined],
  ["MAX_CONNECTIONS_PER_ADDRESS", (c) => c.maxConnectionsPerAddress, undefined, "50", 50],
];

for (const [name, of, byDefault, value, read] of single) {
  test(`${name} has its default, and takes ${value}`, () => {
    assert.deepEqual(of(readConfig({})), byDefault);
    assert.deepEqual(of(readConfig({ [name]: value })), read);
  });
}

test("an empty environment means the sandbox, for callers without credentials", () => {
  const config = readConfig({});
  assert.equal(config.accounts.get("default")?.login, "sandbox");
  assert.equal(config.accounts.get("default")?.password.reveal(), "sandbox-password");
  assert.deepEqual([...config.auth.modes], ["none"]);
  assert.equal(config.redis, undefined);
});

test("switches that depend on others, and the largest of all numbers", () => {
  const required = (value?: string) =>
    readConfig({ ...live, REDIS_URL: "redis://127.0.0.1", REDIS_REQUIRED_FOR_MONEY: value });
  assert.equal(required().redis?.requiredForMoney, false);
  assert.equal(required("true").redis?.requiredForMoney, true);
  const production = { NODE_ENV: "production" };
  assert.equal(readConfig(production).graphqlIntrospection, false);
  const shown = { ...production, GRAPHQL_INTROSPECTION: "true" };
  assert.equal(readConfig(shown).graphqlIntrospection, true);
  assert.equal(readConfig({ MAX_BUFFERED_BYTES: "1099511627776" }).maxBufferedBytes, 2 ** 40);
});

test("an upstream needs its credentials and an authentication mode", () => {
  refused({ ...live, UPSTREAM_LOGIN: undefined }, /^UPSTREAM_LOGIN: is missing/);
  refused({ ...live, UPSTREAM_PASSWORD: undefined }, /^UPSTREAM_PASSWORD: is missing/);
  refused({ ...live, AUTH_MODE: undefined }, /^AUTH_MODE: is missing, accepted is none/);
  const account = readConfig(live).accounts.get("default");
  assert.equal(account?.url, "http://127.0.0.1:9");
  assert.equal(readConfig(live).sandboxAddress, undefined);
});

test("a wrong value is refused with the variable, what it got and what is accepted", () => {
  const cases: [variable: string, value: string, accepted: RegExp][] = [
    ["PUBLIC_ADDR", "4000", /host:port/],
    ["PUBLIC_ADDR", "127.0.0.1:70000", /host:port/],
    ["UPSTREAM_URL", "ftp://x", /absolute http or https URL/],
    ["UPSTREAM_TIMEOUT", "30", /with a unit/],
    ["UPSTREAM_TIMEOUT", "0", /above 0/],
    ["RPC_MAX_CONNECTION_AGE_GRACE", "0", /above 0/],
    ["UPSTREAM_TIMEOUT", "1.5s", /whole number/],
    ["EVENT_RETENTION", "-1d", /whole number/],
    ["RATE_LIMIT_INITIAL", "0", /from 1/],
    ["RATE_LIMIT_RESERVE", "1", /below 1/],
    ["PAYOUT_SUCCESS_STATUSES", "success,Pending", /such as success,completed/],
    ["PAYOUT_FAILURE_STATUSES", "init", /such as success,completed/],
    ["RATE_LIMIT_RESERVE", "20%", /below 1/],
    ["RATE_LIMIT_RESERVE", "0.99999999999999999999", /below 1/],
    ["AUTH_MODE", "keys,none", /none, or keys/],
    ["AUTH_MODE", "basic", /none, or keys/],
    ["CORS_ORIGINS", "*", /origins/],
    ["CORS_ORIGINS", "https://a.example/path", /origins/],
    ["CORS_ORIGINS", "https://a.example:*", /origins/],
    ["REDIS_URL", "http://127.0.0.1", /redis:\/\//],
    ["REDIS_URL", "redis+sentinel://127.0.0.1:1", /redis:\/\//],
    ["REDIS_URL", "redis+sentinel://127.0.0.1:x/main", /redis:\/\//],
    ["REDIS_URL", "redis+sentinel://user:%zz@127.0.0.1:1/main", /redis:\/\//],
    ["REDIS_URL", "redis://127.0.0.1:x", /redis:\/\//],
    ["REDIS_URL", "redis://127.0.0.1:99999", /redis:\/\//],
    ["REDIS_URL", "redis://user:%zz@127.0.0.1", /redis:\/\//],
    ["REDIS_URL", "redis://127.0.0.1/main", /redis:\/\//],
    ["REDIS_URL", "redis://127.0.0.1/1,redis://127.0.0.2/1", /cluster has no databases/],
    ["REDIS_URL", "rediss://127.0.0.1,redis://127.0.0.2", /all rediss/],
    ["UPSTREAM_URL", "http://127.0.0.1/api?key=1", /without a query/],
    ["UPSTREAM_URL", "http://127.0.0.1/api#1", /without a query/],
    ["PUBLIC_URL", "https://g.example/?a=1", /without a query/],
    ["HEARTBEAT_INTERVAL", "15", /with a unit/],
    ["HEARTBEAT_INTERVAL", "61m", /at most 1h/],
    ["LOG_LEVEL", "loud", /trace/],
    ["ALLOW_UNAUTHENTICATED", "yes", /true or false/],
    ["WATCH_TOKEN_SECRET", "short", /at least 32 bytes/],
    ["ADMIN_KEY", "k".repeat(31), /at least 32 characters/],
    ["ADMIN_KEY", "a key with spaces in it ".repeat(2), /without spaces/],
    ["SHUTDOWN_TIMEOUT", "30d", /at most 1d/],
    ["SHUTDOWN_SPREAD", "25h", /at most 1d/],
    ["MAX_BUFFERED_BYTES", "1099511627777", /to 1099511627776/],
    ["MAX_STREAMS_PER_CALLER", "0", / from 1/],
    ["MAX_CONCURRENT_CALLS", "many", / from 0/],
    ["GRAPHQL_SUBGRAPH", "federation", /true or false/],
    ["OTEL_METRICS_EXPORTER", "statsd", /none, or otlp, prometheus/],
    ["OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "collector:4318", /http or https URL/],
    ["OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "both", /cumulative, delta or lowmemory/],
    ["OTEL_METRIC_EXPORT_INTERVAL", "0", /whole number from 1/],
    ["OTEL_SDK_DISABLED", "yes", /true or false/],
    ["OTEL_TRACES_EXPORTER", "console", /none or otlp/],
    ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", /"grpc", accepted is http\/protobuf/],
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", /http or https URL/],
    ["OTEL_EXPORTER_OTLP_COMPRESSION", "zstd", /none or gzip/],
    ["OTEL_EXPORTER_OTLP_TIMEOUT", "10s", /whole number/],
    ["OTEL_TRACES_SAMPLER", "sometimes", /traceidratio/],
    ["OTEL_SEMCONV_STABILITY_OPT_IN", "RPC", /such as rpc\/dup/],
    ["OTEL_RESOURCE_ATTRIBUTES", "team", /key=value/],
    ["OTEL_BSP_MAX_QUEUE_SIZE", "0", /whole number from 1/],
  ];
  // OTEL_* variables are looked at only where traces or metrics are sent.
  const sends = { OTEL_METRICS_EXPORTER: "otlp", OTEL_TRACES_EXPORTER: "otlp" };
  for (const [variable, value, accepted] of cases) {
    refused(
      { ...live, ...sends, [variable]: value },
      new RegExp(`^${variable}: got .*${accepted.source}`),
    );
  }
});

test("URLs may have credentials, several hosts, a database and a base path", () => {
  for (const [variable, value] of [
    ["REDIS_URL", "redis://user:p%40ss@127.0.0.1:6379/3"],
    ["REDIS_URL", "rediss://:pass@[::1]:6379/"],
    ["REDIS_URL", "redis://127.0.0.1:1, redis://127.0.0.2:2/0"],
    ["REDIS_URL", "redis+sentinel://user:p%40ss@127.0.0.1,[::1]:26379/main"],
    ["REDIS_URL", "rediss+sentinel://user:p%40ss@127.0.0.1,[::1]:26379/main"],
    ["UPSTREAM_URL", "http://127.0.0.1:9/base/"],
    ["PUBLIC_URL", "https://user:pass@g.example/base/"],
  ] as const) {
    assert.ok(readConfig({ ...live, [variable]: value }), value);
  }
});

test("a base URL is used as it is read: without blanks, a line break and slashes at its end", () => {
  for (const value of [
    "https://g.example/base//\n",
    " https://g.example/base ",
    "https://g.ex\nample/base",
  ]) {
    assert.equal(readConfig({ ...live, PUBLIC_URL: value }).publicUrl, "https://g.example/base");
  }
});

test("all mistakes are told at once, a line for each", () => {
  const mistakes = mistakesOf({
    UPSTREAM_URL: "https://pay.example",
    UPSTREAM_PASSWORD_FILE: join(dir, "absent"),
    AUTH_MODE: "keys,jwt",
    AUTH_JWKS_URL: "http://login.example/jwks",
    UPSTREAM_TIMEOUT: "soon",
    HEARTBEAT_INTERVAL: "2h",
    SHUTDOWN_DELAY: "9s",
    WATCH_TOKEN_SECRET: "short",
    OTEL_TRACES_EXPORTER: "otlp",
    OTEL_TRACES_SAMPLER: "sometimes",
  });
  assert.deepEqual(
    mistakes
      .map((line) => /^[A-Z_]+: (is missing|got|is http|[^ ]+ cannot)/.exec(line)?.[0])
      .sort(),
    [
      "API_KEYS_FILE: is missing",
      "AUTH_AUDIENCE: is missing",
      "AUTH_ISSUER: is missing",
      "AUTH_JWKS_URL: is http",
      "DATA_DIR: is missing",
      "HEARTBEAT_INTERVAL: got",
      "OTEL_TRACES_SAMPLER: got",
      "PUBLIC_URL: is missing",
      "SHUTDOWN_DELAY: got",
      "UPSTREAM_LOGIN: is missing",
      `UPSTREAM_PASSWORD_FILE: ${join(dir, "absent")} cannot`,
      "UPSTREAM_TIMEOUT: got",
      "WATCH_TOKEN_SECRET: got",
    ],
  );
  assert.equal(new ConfigError(mistakes).message, mistakes.join("\n"));
  // The default of AUTH_MODE follows from the upstream; what is given does not.
  const both = mistakesOf({ ...live, UPSTREAM_URL: "ftp://x", AUTH_MODE: "basic" });
  assert.deepEqual(
    both.map((line) => line.split(":")[0]),
    ["UPSTREAM_URL", "AUTH_MODE"],
  );
});

test("a variable is looked at though the one that decides whether it matters is wrong", () => {
  const env = { ...live, REDIS_URL: "redis:/x", REDIS_MIN_REPLICAS: "most" };
  assert.deepEqual(
    mistakesOf(env).map((line) => line.split(":")[0]),
    ["REDIS_URL", "REDIS_MIN_REPLICAS"],
  );
});

test("a wrong variable leads to no second mistake in variables that depend on it", () => {
  const alone = (env: Record<string, string>) => assert.equal(mistakesOf(env).length, 1);
  alone({ ...live, AUTH_MODE: "basic", RPC_ADDR: "0.0.0.0:4001" });
  alone({ ...live, ALLOW_VOLATILE: "", REDIS_URL: "redis:/x" });
  alone({ ...live, UPSTREAM_URL: "ftp://x" });
  alone({ SHUTDOWN_TIMEOUT: "1", SHUTDOWN_DELAY: "1d" });
});

test("variables that do not matter at a start are not looked at", () => {
  assert.ok(
    readConfig({
      ...{ REDIS_PREFIX: "a/b", REDIS_MIN_REPLICAS: "most", REDIS_REQUIRED_FOR_MONEY: "1" },
      ...{ AUTH_JWKS_URL: "ldap://x", AUTH_JWKS_FILE: "x" },
    }),
  );
});

test("each default is accepted by the kind of its variable", () => {
  for (const [name, { kind, default: text }] of Object.entries<Variable>(variables)) {
    if (typeof text === "string") assert.notEqual(kind.read(text), undefined, name);
  }
});

test("a variable that looks like the gateway's is named, with the one that is most like it", () => {
  const nearest = {
    UPSTREAM_PASWORD: "UPSTREAM_PASSWORD",
    UPSTREAM_URLS: "UPSTREAM_URL",
    RATE_LIMIT_RESEVRE: "RATE_LIMIT_RESERVE",
    ALOW_PLAINTEXT_UPSTREM: "ALLOW_PLAINTEXT_UPSTREAM",
    CORS_ORIGIN: "CORS_ORIGINS",
    DATADIR: "DATA_DIR",
    LOGLEVEL: "LOG_LEVEL",
    REDIS_URI: "REDIS_URL",
    REDIS_URL_FIEL: "REDIS_URL_FILE",
    OTEL_TRACE_EXPORTER: "OTEL_TRACES_EXPORTER",
  };
  for (const [name, meant] of Object.entries(nearest)) {
    const [warning = "", ...more] = unknownVariables({ [name]: "canary" });
    assert.equal(
      warning,
      `${name}: is no variable of the gateway and has no effect: did you mean ${meant}?`,
    );
    assert.deepEqual(more, []);
  }
  assert.deepEqual(unknownVariables({ UPSTREAM_RETRIES_AT_MOST: "3" }), [
    "UPSTREAM_RETRIES_AT_MOST: is no variable of the gateway and has no effect",
  ]);
});

test("variables of other programs are no cause for a warning", () => {
  const others = [
    ...["PATH", "HOME", "HOSTNAME", "TZ", "NODE_OPTIONS", "NODE_EXTRA_CA_CERTS"],
    ...["SSL_CERT_FILE", "npm_config_cache"],
    ...["REDIS_HOST", "REDIS_PORT", "REDIS_PASSWORD", "REDIS_TLS", "REDIS_SERVICE_HOST"],
    ...["KUBERNETES_SERVICE_PORT_HTTPS", "PAYMENTS_GATEWAY_PORT", "UPSTREAM_SERVICE_HOST"],
    ...["PAYMENTS_GATEWAY_PORT_4001_TCP_ADDR", "PAYMENTS_GATEWAY_RPC_SERVICE_PORT_RPC"],
    ...["OTEL_LOGS_EXPORTER", "OTEL_BLRP_SCHEDULE_DELAY", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"],
    ...["AUTH_TOKEN", "PUBLIC_KEY", "GRAPHQL_URL", "LOG_FORMAT", "MAX_MEMORY", "DATABASE_URL"],
  ];
  assert.deepEqual(unknownVariables(Object.fromEntries(others.map((name) => [name, "1"]))), []);
  // What is like a variable that is set was not meant for it.
  assert.deepEqual(unknownVariables({ REDIS_URI: "redis://x", REDIS_URL: "redis://y" }), []);
  assert.deepEqual(unknownVariables(Object.fromEntries(allNames().map((name) => [name, "1"]))), []);
  assert.deepEqual(unknownVariables({ UPSTREAM_PASWORD: "" }), [], "empty is not set");
});

function allNames(): string[] {
  return Object.entries<Variable>(variables).flatMap(([name, { inFile }]) =>
    inFile ? [name, `${name}_FILE`] : [name],
  );
}

function mistakesOf(env: Record<string, string | undefined>): readonly string[] {
  try {
    readConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.mistakes;
    throw error;
  }
  return [];
}

test("no error shows a secret", () => {
  const canary = "canary-7f3a";
  const secrets = Object.entries<Variable>(variables).filter(([, { secret }]) => secret);
  // A line break and a scheme make the value wrong for every kind that can be wrong.
  const wrong = Object.fromEntries(secrets.map(([name]) => [name, `ftp:/${canary},%zz\n`]));
  for (const env of [
    { ...wrong, AUTH_MODE: "jwt", OTEL_METRICS_EXPORTER: "otlp" },
    { ...live, WATCH_TOKEN_SECRET: canary },
    { ...live, REDIS_URL: `http://user:${canary}@127.0.0.1` },
    { ...live, REDIS_URL: `redis://user:${canary}@127.0.0.1:x` },
    { ...live, UPSTREAM_URL: `http://127.0.0.1/?key=${canary}` },
    { ...live, UPSTREAM_URL: `ftp://user:${canary}@127.0.0.1` },
  ]) {
    assert.throws(
      () => readConfig(env),
      (error) => error instanceof ConfigError && !inspect(error).includes(canary),
    );
  }
});

test("a configuration never prints its secrets", () => {
  const config = readConfig({
    ...live,
    UPSTREAM_PASSWORD: "canary-password",
    UPSTREAM_PREVIOUS_PASSWORDS: "canary-old",
    WATCH_TOKEN_SECRET: "canary-".repeat(8),
    REDIS_URL: "redis://:canary@127.0.0.1:6379",
  });
  const printed = inspect(config, { depth: null }) + JSON.stringify([...config.accounts.values()]);
  assert.ok(!printed.includes("canary"));
});

test("secrets and URLs may be in files, of which only the last line break is removed", () => {
  const config = readConfig({
    UPSTREAM_URL_FILE: file("url", "http://127.0.0.1:9\n"),
    ALLOW_VOLATILE: "true",
    UPSTREAM_LOGIN: "shop",
    // As some editors write it, with a byte order mark.
    UPSTREAM_PASSWORD_FILE: file("password", "\ufeff p \r\n"),
    AUTH_MODE: "none",
  });
  assert.equal(config.accounts.get("default")?.password.reveal(), " p ");
  refused(
    { ...live, UPSTREAM_PASSWORD_FILE: file("p2", "x") },
    /^UPSTREAM_PASSWORD: is given twice/,
  );
  refused(
    { ...live, UPSTREAM_PASSWORD: undefined, UPSTREAM_PASSWORD_FILE: join(dir, "absent") },
    /^UPSTREAM_PASSWORD_FILE: .*ENOENT/,
  );
});

test("passwords are not trimmed, and previous ones are split at commas", () => {
  const account = readConfig({
    ...live,
    UPSTREAM_PASSWORD: " with spaces ",
    UPSTREAM_PREVIOUS_PASSWORDS: "old ,,older",
  }).accounts.get("default");
  assert.equal(account?.password.reveal(), " with spaces ");
  assert.deepEqual(
    account?.previousPasswords.map((p) => p.reveal()),
    ["old ", "older"],
  );
  const path = file("previous-passwords", "old,older\n");
  const inFile = readConfig({ ...live, UPSTREAM_PREVIOUS_PASSWORDS_FILE: path }).accounts;
  const previous = inFile.get("default")?.previousPasswords.map((secret) => secret.reveal());
  assert.deepEqual(previous, ["old", "older"]);
});

test("a login is not shown: with a colon it may be the login and the password", () => {
  refused(
    { ...live, UPSTREAM_LOGIN: "shop:canary" },
    /^UPSTREAM_LOGIN: got a value that is not shown, accepted is .*without a colon/,
  );
});

test("AUTH_MODE=none is refused off loopback without ALLOW_UNAUTHENTICATED=true", () => {
  refused({ RPC_ADDR: "0.0.0.0:4001" }, /^AUTH_MODE: none is refused while RPC_ADDR/);
  refused({ PUBLIC_ADDR: "[::]:4000" }, /^AUTH_MODE: none is refused while PUBLIC_ADDR/);
  readConfig({ ADMIN_ADDR: "0.0.0.0:4002" });
  readConfig({ RPC_ADDR: "0.0.0.0:4001", ALLOW_UNAUTHENTICATED: "true" });
  readConfig({ RPC_ADDR: "[::1]:4001", PUBLIC_ADDR: "localhost:4000" });
});

test("an upstream that is not on this machine needs PUBLIC_URL for its callbacks", () => {
  const remote = { ...live, UPSTREAM_URL: "https://pay.example" };
  refused(remote, /^PUBLIC_URL: is missing/);
  const config = readConfig({ ...remote, PUBLIC_URL: "https://gateway.example/" });
  assert.equal(config.publicUrl, "https://gateway.example");
});

test("MERCHANTS_FILE configures several merchant accounts", () => {
  const path = file(
    "merchants.json",
    JSON.stringify({
      shop: { login: "a", password: "pa", previous_passwords: ["pb"] },
      market: { login: "b", password: "pc", url: "http://127.0.0.2:1/api/" },
    }),
  );
  const { accounts } = readConfig({ ...live, MERCHANTS_FILE: path });
  assert.deepEqual([...accounts.keys()], ["shop", "market"]);
  assert.equal(accounts.get("shop")?.url, "http://127.0.0.1:9");
  assert.equal(accounts.get("market")?.url, "http://127.0.0.2:1/api");

  const bad = (text: string, message: RegExp) =>
    refused({ ...live, MERCHANTS_FILE: file("bad.json", text) }, message);
  bad("{", /^MERCHANTS_FILE: .*not JSON/);
  bad("{}", /^MERCHANTS_FILE: .*names no merchant/);
  bad('{"a":{"login":"x"}}', /^MERCHANTS_FILE: .*a\.password/);
  bad('{"a/b":{"login":"x","password":"y"}}', /^MERCHANTS_FILE: .*a\/b: is not a name of letters/);
  bad('{"a":{"login":"x","password":"y","passwort":"z"}}', /^MERCHANTS_FILE/);
  const twice = /^MERCHANTS_FILE: .*has a name twice/;
  bad('{"a":{"login":"x","password":"y"},"a" : {"login":"z","password":"y"}}', twice);
  bad('{"a":{"login":"x","password":"y\\"","password":"z"}}', twice);
  const colons = '{"a":{"login":"x\\\\","password":"\\":\\":"},"b":{"login":"\\"","password":"y"}}';
  assert.equal(readConfig({ ...live, MERCHANTS_FILE: file("ok.json", colons) }).accounts.size, 2);
});

test("two accounts with one password are refused: each would accept the other's callbacks", () => {
  const merchants = (market: object) => ({
    ...live,
    MERCHANTS_FILE: file(
      "twins.json",
      JSON.stringify({
        shop: { login: "a", password: "canary-1", previous_passwords: ["canary-0", "canary-1"] },
        market: { login: "b", ...market },
      }),
    ),
  });
  const message = /^MERCHANTS_FILE: .*shop and market share a password/;
  refused(merchants({ password: "canary-1" }), message);
  refused(merchants({ password: "canary-0" }), message);
  refused(merchants({ password: "p", previous_passwords: ["canary-0"] }), message);
  assert.throws(
    () => readConfig(merchants({ password: "canary-1" })),
    (error) => !inspect(error).includes("canary"),
  );
  // Control: different passwords.
  assert.equal(readConfig(merchants({ password: "canary-2" })).accounts.size, 2);
});

test("an upstream or key set over http is refused off loopback", () => {
  const plain = { ...live, UPSTREAM_URL: "http://pay.example", PUBLIC_URL: "https://g.example" };
  refused(plain, /^UPSTREAM_URL: .*http: off loopback \(pay\.example\).*ALLOW_PLAINTEXT_UPSTREAM/);
  assert.ok(readConfig({ ...plain, ALLOW_PLAINTEXT_UPSTREAM: "true" }));
  assert.ok(readConfig({ ...plain, UPSTREAM_URL: "https://pay.example" }));
  assert.ok(readConfig({ ...plain, UPSTREAM_URL: "http://[::1]:9" }));
  const merchants = file(
    "plain.json",
    '{"a":{"login":"a","password":"x","url":"http://10.0.0.1"},"b":{"login":"b","password":"y"}}',
  );
  refused(
    { ...live, MERCHANTS_FILE: merchants, PUBLIC_URL: "https://g.example" },
    /^MERCHANTS_FILE: the upstream of a/,
  );
  const jwt = { ...live, AUTH_MODE: "jwt", AUTH_ISSUER: "i", AUTH_AUDIENCE: "a" };
  refused({ ...jwt, AUTH_JWKS_URL: "http://login.example/jwks" }, /^AUTH_JWKS_URL: is http: off/);
  assert.ok(readConfig({ ...jwt, AUTH_JWKS_URL: "http://127.0.0.1:9/jwks" }));
  refused(
    { ...jwt, AUTH_JWKS_URL: "https://canary:canary@login.example/jwks" },
    /^AUTH_JWKS_URL: got a value that is not shown, .*without a user name or a password/,
  );
});

test("TLS needs a certificate and a key", () => {
  refused({ TLS_CERT_FILE: "c" }, /^TLS_KEY_FILE: is missing/);
  refused({ TLS_CLIENT_CA_FILE: "a" }, /^TLS_CERT_FILE: is missing/);
  refused({ TLS_CLIENT_CA_FILE: "a", TLS_CERT_FILE: "c" }, /^TLS_KEY_FILE: is missing/);
  const both = { TLS_CERT_FILE: "c", TLS_KEY_FILE: "k" };
  const files = { certFile: "c", keyFile: "k" };
  assert.deepEqual(readConfig(both).tls, { ...files, clientCaFile: undefined });
  const mutual = readConfig({ ...both, TLS_CLIENT_CA_FILE: "a" });
  assert.deepEqual(mutual.tls, { ...files, clientCaFile: "a" });
});

test("a shutdown's delay leaves time for the calls in flight", () => {
  assert.equal(readConfig({ SHUTDOWN_DELAY: "5s" }).shutdown.delayMs, 5_000);
  refused({ SHUTDOWN_DELAY: "6s" }, /^SHUTDOWN_DELAY: got 6000 ms, accepted is at most half of/);
});

function refused(env: Record<string, string | undefined>, message: RegExp): void {
  assert.throws(() => readConfig(env), { name: "ConfigError", message });
}

test("files for TLS with Redis need rediss://, a certificate needs its key, and each is readable", () => {
  const file = import.meta.filename;
  const of = (env: Record<string, string>) => ({ REDIS_URL: "rediss://redis.example", ...env });
  const { redis } = readConfig(of({ REDIS_TLS_CA_FILE: file }));
  assert.equal(redis?.tls.caFile, file);
  refused(of({ REDIS_TLS_CA_FILE: "/no/such/file" }), /^REDIS_TLS_CA_FILE: .*cannot be read/);
  refused(of({ REDIS_TLS_CERT_FILE: file }), /^REDIS_TLS_KEY_FILE: is missing/);
  const plain = { REDIS_URL: "redis://redis.example", REDIS_TLS_CA_FILE: file };
  refused(plain, /^REDIS_URL: is not rediss:/);
});

test("trusted documents come from a JSON object, and PERSISTED_ONLY needs them", () => {
  const good = file("documents.json", JSON.stringify({ abc: "{ rateLimit { limit } }" }));
  assert.deepEqual(readConfig({ PERSISTED_DOCUMENTS_FILE: good }).trustedDocuments, {
    documents: new Map([["abc", "{ rateLimit { limit } }"]]),
    only: false,
  });
  const only = { PERSISTED_DOCUMENTS_FILE: good, PERSISTED_ONLY: "true" };
  assert.equal(readConfig(only).trustedDocuments?.only, true);
  assert.equal(readConfig({}).trustedDocuments, undefined);
  refused({ PERSISTED_ONLY: "true" }, /^PERSISTED_/);
  refused({ PERSISTED_ONLY: "yes" }, /^PERSISTED_/);
  for (const text of ["[]", '"x"', '{"a": 1}', '{"a": ""}', "{"]) {
    refused({ PERSISTED_DOCUMENTS_FILE: file("wrong.json", text) }, /^PERSISTED_/);
  }
  refused({ PERSISTED_DOCUMENTS_FILE: join(dir, "missing.json") }, /^PERSISTED_/);
});

test("each authentication mode needs all of its variables", () => {
  const keys = { ...live, AUTH_MODE: "keys" };
  refused(keys, /^API_KEYS_FILE: is missing/);
  assert.equal(readConfig({ ...keys, API_KEYS_FILE: "keys.json" }).auth.apiKeysFile, "keys.json");

  const jwt = {
    ...live,
    AUTH_MODE: "jwt",
    AUTH_JWKS_URL: "https://login.shop.example/jwks/",
    AUTH_ISSUER: "https://login.shop.example/",
    AUTH_AUDIENCE: "payments-gateway",
  };
  for (const variable of ["AUTH_JWKS_URL", "AUTH_ISSUER", "AUTH_AUDIENCE"]) {
    refused({ ...jwt, [variable]: undefined }, new RegExp(`^${variable}: is missing`));
  }
  refused({ ...jwt, AUTH_JWKS_FILE: "jwks.json" }, /^AUTH_JWKS_FILE: .*give one/);
  refused({ ...jwt, AUTH_JWKS_URL: "file:///jwks" }, /^AUTH_JWKS_URL: .*http/);
  // A slash at the end is part of a URL and of an issuer: it is kept.
  assert.deepEqual(readConfig(jwt).auth.jwt, {
    keySet: { url: "https://login.shop.example/jwks/" },
    issuer: "https://login.shop.example/",
    audience: "payments-gateway",
  });
  const file = { ...jwt, AUTH_JWKS_URL: undefined, AUTH_JWKS_FILE: "jwks.json" };
  assert.deepEqual(readConfig(file).auth.jwt?.keySet, { file: "jwks.json" });
  refused({ ...keys, ...jwt, AUTH_MODE: "keys,jwt" }, /^API_KEYS_FILE: is missing/);
});

test("previous watch secrets need a present one and 32 bytes each, and may be in a file", () => {
  const [now, old, older] = ["now", "old", "older"].map((name) => name.padEnd(32, "-canary"));
  const read = (env: Record<string, string>) => {
    const { watchTokenPreviousSecrets } = readConfig({ WATCH_TOKEN_SECRET: now, ...env });
    return watchTokenPreviousSecrets.map((secret) => secret.reveal());
  };
  const variable = "WATCH_TOKEN_PREVIOUS_SECRETS";
  assert.deepEqual(read({}), []);
  assert.deepEqual(read({ [variable]: `${old},,${older},` }), [old, older]);
  const path = file("watch-secrets", `${old},${older}\n`);
  assert.deepEqual(read({ [`${variable}_FILE`]: path }), [old, older]);
  refused({ [variable]: old }, /^WATCH_TOKEN_SECRET: is missing beside WATCH_TOKEN_PREVIOUS/);
  refused(
    { WATCH_TOKEN_SECRET: now, [variable]: `${old},short` },
    /^WATCH_TOKEN_PREVIOUS_SECRETS: got a value that is not shown, accepted is secrets of at least 32 bytes each/,
  );
});
