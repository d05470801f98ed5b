import type { Logger } from "pino";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { RedisClient } from "../redis/connect.ts";
import type { OnCommand } from "../redis/observed-commands.ts";

/** Metrics and logs of Redis. @returns a function to call once, and only if Redis is used */
export function redisTelemetry(registry: Registry, log: Logger) {
  const registers = [registry];
  const seconds = new Histogram({
    name: "payments_gateway_redis_command_duration_seconds",
    help: "Duration of Redis commands",
    labelNames: ["command"],
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
    registers,
  });
  const errors = new Counter({
    name: "payments_gateway_redis_command_errors_total",
    help: "Redis commands that failed or were refused",
    labelNames: ["command"],
    registers,
  });
  const connectionErrors = new Counter({
    name: "payments_gateway_redis_connection_errors_total",
    help: "Errors of Redis connections, failed attempts to connect included",
    registers,
  });
  return () => {
    const up = new Gauge({
      name: "payments_gateway_redis_up",
      help: "1 while Redis answers for every account, else 0; absent without Redis",
      registers,
    });
    const awaySeconds = new Gauge({
      name: "payments_gateway_redis_away_seconds",
      help: "How long Redis has been unreachable; 0 while it answers; absent without Redis",
      registers,
    });
    const syncedReplicas = new Gauge({
      name: "payments_gateway_redis_replicas",
      help: "Redis replicas in sync, in a cluster those of the primary with the fewest; absent without Redis",
      registers,
    });
    const failovers = new Counter({
      name: "payments_gateway_redis_failovers_total",
      help: "Redis failovers: how often the Sentinels named a new primary; absent without Redis",
      registers,
    });
    const onCommand: OnCommand = ({ name, failed, durationMs }) => {
      seconds.observe({ command: name }, durationMs / 1_000);
      errors.inc({ command: name }, failed ? 1 : 0);
    };
    return {
      onCommand,
      onError(error: Error) {
        connectionErrors.inc();
        log.debug({ reason: error.message }, "redis");
      },
      onFailover() {
        failovers.inc();
        log.info("Redis failover: the Sentinels name a new primary");
      },
      onAway(reason: string | undefined) {
        log.warn(
          { reason },
          "Redis is away: callbacks are answered 503, calls with an Idempotency-Key are refused; retrying",
        );
      },
      onBack(awayMs: number) {
        log.info({ awayMs }, "Redis is back");
      },
      refresh(client: RedisClient, awaySinceMs: number | undefined, replicas: number | undefined) {
        const awayMs = awaySinceMs === undefined ? 0 : Date.now() - awaySinceMs;
        awaySeconds.set(Math.max(awayMs, 0) / 1_000);
        syncedReplicas.set(replicas ?? 0);
        up.set(client.status === "ready" && awaySinceMs === undefined ? 1 : 0);
      },
    };
  };
}
