import type { Handlers } from "../report.ts";
import { version } from "../version.ts";
import { alike, type TelemetryContext } from "./metrics.ts";

/** The process itself, and the keys, certificates, Redis and collectors that it uses. */
export function processes({ metrics, log, repeated }: TelemetryContext) {
  metrics
    .gauge("build_info", "Always 1, with the versions as labels", { version: [], node_version: [] })
    .set({ version, node_version: process.versions.node }, 1);
  const sent = {
    trace: metrics.counter(
      "trace_spans_total",
      "Trace spans that ended, by outcome: exported, failed, dropped",
      { outcome: ["exported", "failed", "dropped"] },
    ),
    metric: metrics.counter(
      "metric_exports_total",
      "Rounds of metrics sent to an OpenTelemetry collector, by outcome: exported, failed",
      { outcome: ["exported", "failed"] },
    ),
  };
  const failing = new Set<keyof typeof sent>();
  const commandSeconds = metrics.histogram(
    "redis_command_duration_seconds",
    "Duration of Redis commands",
    { command: [] },
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
  );
  const commandErrors = metrics.counter(
    "redis_command_errors_total",
    "Redis commands that failed or were refused",
    { command: [] },
  );
  const redis = alike((name, help) => metrics.counter(name, help, {}), {
    redis_connection_errors_total:
      "Errors of Redis connections, failed attempts to connect included",
    redis_failovers_total: "Redis failovers: how often the Sentinels named a new primary",
  });
  /** The last error of a connection to Redis, and when it came: that none is there says no cause. */
  let lastError = { connectionError: "", atMs: -Infinity };
  return {
    filesChanged: (about) => log.info(about, "changed files are in force"),
    filesUnusable: (about) =>
      log.error(about, "cannot use a changed file: the previous one stays in force"),
    keySetNotFetched: (about) =>
      repeated.add(
        `key set: ${about.reason}`,
        about,
        "cannot fetch the key set of AUTH_JWKS_URL: the last one stays valid for an hour, and without one no JWT can be verified",
      ),
    redisCommand(command) {
      commandSeconds.observe(command, command.durationMs);
      commandErrors.add(command, command.failed ? 1 : 0);
    },
    redisError({ reason }) {
      redis.redis_connection_errors_total.add({});
      lastError = { connectionError: reason, atMs: performance.now() };
      log.debug({ reason }, "redis");
    },
    redisFailover() {
      redis.redis_failovers_total.add({});
      log.info("Redis failover: the Sentinels name a new primary");
    },
    redisAway(about) {
      const { connectionError, atMs } = lastError;
      const isRecent = performance.now() - atMs < recentMs;
      log.warn(
        { ...about, ...(isRecent && { connectionError }) },
        `Redis is ${about.awayMs === 0 ? "" : "still "}away: callbacks are answered 503, calls with an Idempotency-Key are refused; retrying`,
      );
    },
    redisBack: (about) => log.info(about, "Redis is back"),
    telemetrySent({ signal, outcome, count, error }) {
      sent[signal].add({ outcome }, count);
      if (outcome === "dropped" || failing.has(signal) === (outcome === "failed")) return;
      if (outcome === "failed") {
        failing.add(signal);
        log.warn({ err: error }, `${signal} export failing: what could not be sent is dropped`);
      } else {
        failing.delete(signal);
        log.info(`${signal} export works again`);
      }
    },
  } satisfies Partial<Handlers>;
}

/** An older error of a connection is of another outage: while one lasts, tries follow each other. */
const recentMs = 10_000;
