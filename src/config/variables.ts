import { intakeLimits } from "../net/intake-limits.ts";
import { hasFailover } from "../redis/url.ts";
import { logLevels } from "../report.ts";
import type { ValueKind } from "./kinds.ts";
import * as kinds from "./kinds.ts";

/** A row of the table of all environment variables. `npm run generate` makes its page of the docs. */
export interface Variable<T = unknown> {
  readonly kind: ValueKind<T>;
  /** The text that is read if the variable is not set. */
  readonly default?: string | Fallback;
  /** What the page says in place of a default that depends on other variables. */
  readonly defaultDoc?: string;
  /** It is a mistake if there is no value. */
  readonly required?: true;
  /** When the variable matters; at other starts nothing looks at it. Default: always. */
  readonly readIf?: Condition;
  /** The value is a secret or may hold one: no message shows it. */
  readonly secret?: true;
  /** `<name>_FILE` may name a file that holds the value. */
  readonly inFile?: true;
  /** What it is for, in Markdown. Without it, the page has no row of its own for the variable. */
  readonly doc?: string;
}

/** What other variables say about a start. */
type Condition = (values: Values) => boolean;

const withOneAccount: Condition = (values) => values.MERCHANTS_FILE === undefined;
/** There is no payments service: the emulator runs inside the process. */
export const inSandbox: Condition = (values) =>
  values.UPSTREAM_URL === undefined && withOneAccount(values);
const inProduction: Condition = (values) => values.NODE_ENV === "production";
const withRedis: Condition = (values) => values.REDIS_URL !== undefined;
/** A replica of Redis can become the primary. */
const withFailover: Condition = (values) => hasFailover(values.REDIS_URL ?? "");
const withKeys: Condition = (values) => values.AUTH_MODE.has("keys");
const withJwt: Condition = (values) => values.AUTH_MODE.has("jwt");
const withTelemetry: Condition = (values) => !values.OTEL_SDK_DISABLED;
/** Traces are sent; an endpoint alone turns them on. */
export const withTraces: Condition = (values) => {
  const exporter = values.OTEL_TRACES_EXPORTER;
  if (exporter) return exporter === "otlp";
  return !!(values.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? values.OTEL_EXPORTER_OTLP_ENDPOINT);
};
/** Only a share of the traces is kept. */
const withTracesByShare: Condition = (values) =>
  values.OTEL_TRACES_SAMPLER?.endsWith("ratio") ?? false;
/** Metrics are sent. `prometheus` needs no exporter: /metrics serves it anyway. */
export const withMetrics: Condition = (values) =>
  values.OTEL_METRICS_EXPORTER?.includes("otlp") ?? false;
const withExport: Condition = (values) => withTraces(values) || withMetrics(values);

/** A default that depends on other variables. */
type Fallback = (values: Values) => string | undefined;

function either(is: Condition, yes: string, no?: string): Fallback {
  return (values) => (is(values) ? yes : no);
}

const secret = { secret: true, inFile: true } as const;

// biome-ignore format: a table
const upstream = {
  UPSTREAM_URL: { kind: kinds.baseUrl, ...secret, defaultDoc: "the sandbox",
    doc: "base address of the payments service: https, or http on loopback" },
  ALLOW_PLAINTEXT_UPSTREAM: { kind: kinds.boolean, default: "false",
    doc: "allows http off loopback, where cards and credentials are sent unencrypted" },
  UPSTREAM_LOGIN: { kind: kinds.login, required: true, default: either(inSandbox, "sandbox"),
    defaultDoc: "`sandbox` with the sandbox, else required", readIf: withOneAccount,
    // With a colon it is perhaps login:password.
    secret: true, doc: "the merchant's login" },
  UPSTREAM_PASSWORD: { kind: kinds.password, ...secret, required: true, default: either(inSandbox, "sandbox-password"),
    defaultDoc: "`sandbox-password` with the sandbox, else required", readIf: withOneAccount,
    doc: "the merchant's password, which also verifies callbacks" },
  UPSTREAM_PREVIOUS_PASSWORDS: { kind: kinds.passwords, ...secret, default: "", readIf: withOneAccount,
    doc: "further passwords. While you rotate a password, the gateway also accepts callbacks signed with these, and decrypts with them what it has stored: keep an old password for twice `EVENT_RETENTION` ([security](../SECURITY.md#changing-secrets-without-an-outage))" },
  UPSTREAM_TIMEOUT: { kind: kinds.duration(), default: "30s",
    doc: "longest time that one call to the payments service may take" },
  MERCHANTS_FILE: { kind: kinds.merchantsFile,
    doc: '`{"<name>": {"login", "password", "previous_passwords": [], "url"?}}`: several merchant accounts; callers name the account in `x-merchant-account`' },
  PUBLIC_URL: { kind: kinds.baseUrl, ...secret, defaultDoc: "with a payments service on loopback: the public listener's own address; else required",
    doc: "the address by which the service reaches the public listener" },
} as const satisfies Table;

// biome-ignore format: a table
const listeners = {
  PUBLIC_ADDR: { kind: kinds.address, default: "127.0.0.1:4000",
    doc: "the public listener: GraphQL, watches, callbacks" },
  RPC_ADDR: { kind: kinds.address, default: "127.0.0.1:4001",
    doc: "the rpc listener: Connect, gRPC and gRPC-Web" },
  ADMIN_ADDR: { kind: kinds.address, default: "127.0.0.1:4002",
    doc: "the admin listener: health, metrics, the operator's console" },
  SANDBOX_ADDR: { kind: kinds.address, default: "127.0.0.1:4010", doc: "the sandbox" },
  TLS_CERT_FILE: { kind: kinds.path,
    doc: "certificate for TLS on the rpc listener; reloaded when it changes" },
  TLS_KEY_FILE: { kind: kinds.path, doc: "its key; reloaded when it changes" },
  TLS_CLIENT_CA_FILE: { kind: kinds.path,
    doc: "file of PEM authorities: the rpc listener then requires from every client a certificate that one of them signed (mTLS); reloaded when it changes" },
  RPC_MAX_CONNECTION_AGE: { kind: kinds.duration({ zero: true }), default: "0",
    doc: "after this time (give or take a tenth) a connection takes no new calls, so that callers spread to replicas that were added" },
  RPC_MAX_CONNECTION_AGE_GRACE: { kind: kinds.duration(), default: "1m",
    doc: "how long the streams of such a connection continue; then they end with `UNAVAILABLE` and the cursor" },
  RPC_KEEPALIVE_INTERVAL: { kind: kinds.duration({ zero: true }), default: "30s",
    doc: "how often the gateway sends a PING to an HTTP/2 peer to check that it is still connected" },
  RPC_KEEPALIVE_TIMEOUT: { kind: kinds.duration(), default: "20s",
    doc: "how long the peer may take to answer before its connection is cut" },
} as const satisfies Table;

// biome-ignore format: a table
const state = {
  DATA_DIR: { kind: kinds.text("a directory that this process alone writes"),
    doc: "directory of the embedded store, for a gateway of one process: on a disk of the machine, never on a network file system. The gateway creates it if its parent exists. It does not start if `REDIS_URL` is set too, if it cannot write the directory, if others can write to it ([why](storage.md#one-machine)), or while another process uses it" },
  ALLOW_VOLATILE: { kind: kinds.boolean, default: "false",
    doc: "`true`: allows a real payments service with state in memory only. When the process ends, callbacks that were answered 200 are then lost" },
  REDIS_URL: { kind: kinds.redisUrls, ...secret, doc: "one Redis, a cluster's nodes, or a Sentinel set; `rediss` is TLS, with Sentinels to them and to all servers. User and password are those of the servers: the Sentinels must not ask for any" },
  REDIS_TLS_CA_FILE: { kind: kinds.readableFile, readIf: withRedis,
    doc: "for `rediss://` and `rediss+sentinel://`: the authorities that Redis' certificate may be of, as PEM. Default: those of Node.js. New connections read these three files anew" },
  REDIS_TLS_CERT_FILE: { kind: kinds.readableFile, readIf: withRedis,
    doc: "the certificate for a Redis that asks for one, as PEM" },
  REDIS_TLS_KEY_FILE: { kind: kinds.readableFile, readIf: withRedis,
    doc: "its private key, as PEM" },
  REDIS_MIN_REPLICAS: { kind: kinds.minReplicas, default: either(withFailover, "all", "0"),
    defaultDoc: "`all` with Sentinel or a cluster, else `0`", readIf: withRedis,
    doc: "how many replicas of Redis must hold an event before its callback is answered 200, and a call's intent and `Idempotency-Key` before the call is sent: a number, or `all` for every replica that could be promoted ([why](decisions/0001-all-replicas.md)). If the number is lower than the number of connected replicas, a failover to a replica that lacks the newest writes loses them: the log and `details.redis` of `/readyz` warn about this" },
  REDIS_REQUIRED_FOR_MONEY: { kind: kinds.boolean, default: "false", readIf: withRedis,
    doc: "`true`: calls that move money are `UNAVAILABLE` while Redis is away. With `false` they go on, with a lock that only this process knows ([when to set it](money-safety.md#when-redis-is-away))" },
  REDIS_PREFIX: { kind: kinds.redisPrefix, default: "pgw", readIf: withRedis,
    doc: "prefix of all keys" },
  EVENT_RETENTION: { kind: kinds.duration(), default: "7d", doc: "how long events can be replayed" },
  PAYOUT_SUCCESS_STATUSES: { kind: kinds.statuses, default: "success",
    doc: "the service's status names for a payout that succeeded, in upper or lower case; its documentation does not list them" },
  PAYOUT_FAILURE_STATUSES: { kind: kinds.statuses, default: "failure",
    doc: "its status names for a payout that failed" },
} as const satisfies Table;

// biome-ignore format: a table
const rate = {
  RATE_LIMIT_INITIAL: { kind: kinds.wholeNumber(1, 1_000_000), default: "10",
    doc: "requests per second until the service's first answer sets the limit" },
  RATE_LIMIT_RESERVE: { kind: kinds.share, default: "0.2",
    doc: "share of the budget for calls that move money" },
  RATE_LIMIT_MAX_WAIT: { kind: kinds.duration(), default: "2s",
    doc: "longest time that a call waits for a token" },
  RECONCILE_AFTER: { kind: kinds.duration({ zero: true }), default: "60s",
    doc: "how long the gateway waits before it first looks up an unknown outcome or a missing callback; `0`: it never does" },
  RECONCILE_GIVE_UP: { kind: kinds.duration(), default: "24h",
    doc: "after this time, a payment that could not be settled is flagged for an operator" },
} as const satisfies Table;

// biome-ignore format: a table
const callers = {
  AUTH_MODE: { kind: kinds.authModes, required: true, default: either(inSandbox, "none"), defaultDoc: "`none` with the sandbox, else required",
    doc: "how callers authenticate: see [callers](callers.md). With `none`, listeners on loopback only answer to names of loopback and the host of `PUBLIC_URL` (else 421 or 403)" },
  AUTH_JWKS_URL: { kind: kinds.httpUrl("an http or https URL of a JSON Web Key Set (or AUTH_JWKS_FILE)"), ...secret, readIf: withJwt,
    doc: "the keys that sign callers' JWTs: https, or http on loopback" },
  AUTH_JWKS_FILE: { kind: kinds.path, readIf: withJwt,
    doc: "the same keys in a file, in place of `AUTH_JWKS_URL`; reloaded when it changes" },
  AUTH_ISSUER: { kind: kinds.text("the `iss` of callers' tokens, such as https://login.shop.example/"), required: true, defaultDoc: "required for JWTs", readIf: withJwt,
    doc: "the `iss` that callers' JWTs must have" },
  AUTH_AUDIENCE: { kind: kinds.text("the `aud` that callers' tokens have for this gateway"), required: true, defaultDoc: "required for JWTs", readIf: withJwt,
    doc: "the `aud` that callers' JWTs must have" },
  AUTH_CUSTOMER_CLAIM: { kind: kinds.text("the name of a claim"), default: "customer_external_id",
    doc: "the claim that binds a JWT to one customer" },
  // RFC 9068, 2.2: an access token names the client that it was issued to.
  AUTH_SERVICE_CLAIM: { kind: kinds.text("the name of a claim"), default: "client_id",
    doc: "the claim that names the service a JWT was issued to: all its tokens [take turns](rate-budget.md#callers-take-turns) as one caller. A JWT without it takes turns by its `sub`" },
  ALLOW_UNAUTHENTICATED: { kind: kinds.boolean, default: "false",
    doc: "allows `AUTH_MODE=none` with a public or rpc listener off loopback, which then answers to every `Host`. With `AUTH_MODE=none` an admin listener off loopback serves only health and metrics" },
  API_KEYS_FILE: { kind: kinds.path, required: true, defaultDoc: "required for keys", readIf: withKeys,
    doc: "JSON list of `{name, sha256, scopes[], merchants[]?}`; reloaded when it changes; `payments-gateway keys new` makes entries" },
  ADMIN_KEY: { kind: kinds.bearerSecret, ...secret,
    doc: "with `AUTH_MODE=none`, the key of the admin listener: operators give it on the console, commands as `PAYMENTS_GATEWAY_KEY`. Without it such a listener off loopback serves only health and metrics" },
  WATCH_TOKEN_SECRET: { kind: kinds.longSecret, ...secret, defaultDoc: "random with the sandbox, else there are no watch tokens",
    doc: "signs watch tokens" },
  WATCH_TOKEN_PREVIOUS_SECRETS: { kind: kinds.watchSecrets, ...secret, default: "",
    doc: "watch tokens signed with these are still valid" },
} as const satisfies Table;

/** A page under development is served from a port of its own. */
const localOrigins = "http://localhost:*,http://127.0.0.1:*,http://[::1]:*";

// biome-ignore format: a table
const graphql = {
  CORS_ORIGINS: { kind: kinds.origins, default: either(inSandbox, localOrigins, ""), defaultDoc: "with the sandbox the pages of this machine, on any port; else none",
    doc: "origins whose pages may call `/graphql` and `/watch`; `http://localhost:*` stands for all of its ports" },
  GRAPHQL_INTROSPECTION: { kind: kinds.boolean, default: either(inProduction, "false", "true"), defaultDoc: "`false` in production, else `true`",
    doc: "whether introspection is allowed and errors suggest names" },
  GRAPHQL_SUBGRAPH: { kind: kinds.boolean, default: "false",
    doc: "`true`: `/graphql` also serves a federation router, as [a subgraph of a supergraph](federation.md)" },
  PERSISTED_DOCUMENTS_FILE: { kind: kinds.documentsFile,
    doc: "GraphQL documents; a request may send an id instead of a document" },
  PERSISTED_ONLY: { kind: kinds.boolean, default: "false",
    doc: "refuses all documents but those of the file" },
  NODE_ENV: { kind: kinds.text("any text"), doc: "`production` turns GraphiQL off" },
} as const satisfies Table;

const maxCount = kinds.wholeNumber(0, 1_000_000);

// biome-ignore format: a table
const limits = {
  // A longer interval would keep no connection alive.
  HEARTBEAT_INTERVAL: { kind: kinds.duration({ max: "1h" }), default: "15s",
    doc: "longest silence on SSE: the gateway sends a comment after half of it at the earliest. Also how often it pings a WebSocket; a WebSocket that has not answered by the next ping is cut" },
  MAX_STREAMS_PER_CALLER: { kind: kinds.wholeNumber(1, 1_000_000), defaultDoc: "1000 for services, 20 for customers and watch tokens",
    doc: "live streams that one caller may have in a process" },
  MAX_CONCURRENT_CALLS: { kind: maxCount, default: "5000",
    doc: "calls in flight at once. The gateway refuses further calls at once, those that move money last. It also refuses calls that it could not start in time, however few are in flight. `0`: it refuses no call for either reason" },
  // Room for a few bodies of the largest size.
  MAX_BUFFERED_BYTES: { kind: kinds.wholeNumber(8 * 1_048_576, 2 ** 40), default: `${intakeLimits.bufferedBytes}`,
    doc: "bytes that the bodies of all requests on their way in, the service's answers to reads and all unread answers may hold in memory together. The bodies of one connection may take a quarter of it. Beyond it the gateway drops the largest and slowest bodies (503 or `RESOURCE_EXHAUSTED`, to try again) and cuts the largest unread answers" },
  MAX_CONNECTIONS: { kind: maxCount, default: "10000",
    doc: "connections of each listener; `0`: no limit" },
  MAX_CONNECTIONS_PER_ADDRESS: { kind: maxCount, default: "0",
    doc: "connections of each listener from one address; `0`: no limit, because behind a proxy all come from one address" },
} as const satisfies Table;

// biome-ignore format: a table
const lifetime = {
  // Node fires a timer of more than 24 days at once.
  SHUTDOWN_TIMEOUT: { kind: kinds.duration({ max: "1d" }), default: "10s",
    doc: "longest time that a shutdown may take, its delay included" },
  SHUTDOWN_DELAY: { kind: kinds.duration({ zero: true }), default: "0",
    doc: "how long the gateway still serves everything after readiness and health have turned negative, so that load balancers notice; at most half of `SHUTDOWN_TIMEOUT`" },
  SHUTDOWN_SPREAD: { kind: kinds.duration({ zero: true, max: "1d" }), default: "3s",
    doc: "longest time over which the gateway ends live streams and WebSockets, 10 ms for each" },
  LOG_LEVEL: { kind: kinds.oneOf(...logLevels), default: "info",
    doc: "the least severe log records that are written" },
  LOG_FORMAT: { kind: kinds.oneOf("json", "text"), defaultDoc: "`text` on a terminal, else `json`",
    doc: "`json`: a record a line; `text`: lines for a person" },
  LOG_EXTERNAL_IDS: { kind: kinds.boolean, default: "true",
    doc: "whether records of calls name the `external_id` that a call is about" },
} as const satisfies Table;

/** How all signals are sent to the collector. */
const sending = { readIf: withExport, doc: "as OpenTelemetry defines it" } as const;

const collector = {
  kind: kinds.httpUrl("an http or https URL of a collector, such as http://localhost:4318"),
  secret: true,
} as const;

// biome-ignore format: a table
const telemetry = {
  OTEL_SDK_DISABLED: { kind: kinds.boolean, default: "false",
    doc: "`true` turns off traces and the export of metrics, whatever else is set" },
  OTEL_EXPORTER_OTLP_ENDPOINT: { ...collector, defaultDoc: "none: nothing is traced", readIf: withTelemetry,
    doc: "the OpenTelemetry collector that receives traces, and metrics if `OTEL_METRICS_EXPORTER` asks for them, by http/protobuf" },
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: { ...collector, readIf: withTelemetry,
    doc: "the whole address for traces" },
  OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: { ...collector, readIf: withMetrics,
    doc: "the whole address for metrics" },
  OTEL_TRACES_EXPORTER: { kind: kinds.oneOf("none", "otlp"), defaultDoc: "`otlp` with an endpoint", readIf: withTelemetry,
    doc: "`otlp` sends to the endpoint, by default `http://localhost:4318`" },
  OTEL_METRICS_EXPORTER: { kind: kinds.names("otlp", "prometheus"), default: "none", readIf: withTelemetry,
    doc: "`otlp` sends (by default to `http://localhost:4318/v1/metrics`) [durations](operations.md#metrics-alerts-traces-logs) under the names of OpenTelemetry's conventions; `prometheus` adds nothing to what `/metrics` serves anyway. An endpoint alone does not turn metrics on" },
  OTEL_METRIC_EXPORT_INTERVAL: { kind: kinds.milliseconds, default: "60000", readIf: withMetrics,
    doc: "milliseconds from one export of metrics to the next" },
  OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: { kind: kinds.temporality, default: "cumulative", readIf: withMetrics,
    doc: "whether an export covers everything since the start, or only since the last export" },
  OTEL_SERVICE_NAME: { kind: kinds.text("the name of the service"), defaultDoc: "`payments-gateway`", readIf: withExport,
    doc: "the name under which traces and metrics are sent" },
  OTEL_RESOURCE_ATTRIBUTES: { kind: kinds.pairs, default: "", readIf: withExport,
    doc: "further attributes of the resource that traces and metrics name as their source, beside the gateway's `service.version` and `telemetry.sdk.*`" },
  OTEL_TRACES_SAMPLER: { kind: kinds.sampler, default: "parentbased_always_on", readIf: withTraces,
    doc: "which traces are kept; `parentbased_`: as the caller's trace says, if there is one" },
  OTEL_TRACES_SAMPLER_ARG: { kind: kinds.shareOrAll, default: "1", readIf: withTracesByShare,
    doc: "the share of `traceidratio`" },
  OTEL_SEMCONV_STABILITY_OPT_IN: { kind: kinds.categories, readIf: withTraces,
    doc: "old names of spans and their attributes, in addition to today's. `rpc/dup`: `rpc.system`, `rpc.service`, `rpc.grpc.status_code`, `rpc.connect_rpc.error_code`. `http/dup`: `http.method`, `http.status_code`, `http.scheme`, `http.target`, `net.peer.name`, `net.peer.port`, `net.protocol.*`. `graphql/dup`: spans of operations are called `mutation createPayment` and not `mutation`" },
  OTEL_EXPORTER_OTLP_HEADERS: { kind: kinds.headers, default: "", secret: true, ...sending },
  OTEL_EXPORTER_OTLP_COMPRESSION: { kind: kinds.oneOf("none", "gzip"), default: "none", ...sending },
  OTEL_EXPORTER_OTLP_TIMEOUT: { kind: kinds.milliseconds, default: "10000", ...sending },
  OTEL_EXPORTER_OTLP_CERTIFICATE: { kind: kinds.pemFile, ...sending },
  OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: { kind: kinds.pemFile, ...sending },
  OTEL_EXPORTER_OTLP_CLIENT_KEY: { kind: kinds.pemFile, ...sending },
  // The only protocol that is spoken here.
  OTEL_EXPORTER_OTLP_PROTOCOL: { kind: kinds.oneOf("http/protobuf"), ...sending },
  OTEL_BSP_SCHEDULE_DELAY: { kind: kinds.milliseconds, default: "5000", readIf: withTraces,
    doc: "milliseconds from one batch of spans to the next" },
  OTEL_BSP_MAX_QUEUE_SIZE: { kind: kinds.wholeNumber(1, 1_000_000), default: "2048", readIf: withTraces,
    doc: "spans that may wait to be sent; further ones are dropped" },
} as const satisfies Table;

type Table = Readonly<Record<string, Variable>>;

/** The table, in the sections of its page. */
export const sections = [
  { title: "The payments service", table: upstream },
  { title: "Listeners", table: listeners },
  {
    title: "State and events",
    intro:
      "A gateway with a real payments service needs `REDIS_URL` or `DATA_DIR`; [where state is kept](storage.md) helps to choose. With the sandbox, and without these variables, the gateway keeps its state in memory.",
    table: state,
  },
  { title: "The rate budget and lost outcomes", table: rate },
  { title: "Callers", table: callers },
  { title: "GraphQL", table: graphql },
  { title: "Limits", table: limits },
  { title: "The process", table: lifetime },
  {
    title: "Traces, and metrics by OTLP",
    intro:
      "These are OpenTelemetry's variables, which a platform may set for all its programs: the gateway looks at them only if they turn traces or metrics on.",
    table: telemetry,
  },
];

export const variables = {
  ...{ ...upstream, ...listeners, ...state, ...rate, ...callers },
  ...{ ...graphql, ...limits, ...lifetime, ...telemetry },
};

export type Name = keyof typeof variables;

type ValueOf<V> = V extends { kind: ValueKind<infer T> }
  ? V extends { required: true } | { default: unknown }
    ? T
    : T | undefined
  : never;

/** The value of each variable that matters at a start; those that do not are undefined. */
export type Values = { readonly [N in Name]: ValueOf<(typeof variables)[N]> };
