import type { Logger } from "pino";
import type { LettersObserver } from "../admin/dead-letters.ts";
import type { AppendObserver } from "../events/observed-log.ts";
import type { BucketObserver } from "../ratelimit/observed-bucket.ts";
import type { RedisClient } from "../redis/connect.ts";
import type { OnCommand } from "../redis/observed-commands.ts";
import type { Metrics } from "./metrics.ts";

/** What the stores tell, as metrics and log records. */
export function redisObserver(metrics: Metrics, log: Logger) {
  const { redisUp, redisAwaySeconds, redisReplicas, redisFailovers } = metrics;
  for (const metric of [redisUp, redisAwaySeconds, redisReplicas, redisFailovers]) {
    metrics.registry.registerMetric<string>(metric);
  }
  const onCommand: OnCommand = ({ name, failed, durationMs }) => {
    metrics.redisSeconds.observe({ command: name }, durationMs / 1_000);
    metrics.redisErrors.inc({ command: name }, failed ? 1 : 0);
  };
  return {
    onCommand,
    onError(error: Error) {
      metrics.redisConnectionErrors.inc();
      log.debug({ reason: error.message }, "redis");
    },
    onFailover() {
      metrics.redisFailovers.inc();
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
      redisAwaySeconds.set(Math.max(awayMs, 0) / 1_000);
      redisReplicas.set(replicas ?? 0);
      redisUp.set(client.status === "ready" && awaySinceMs === undefined ? 1 : 0);
    },
  };
}

export function bucketObserver(account: string, metrics: Metrics): BucketObserver {
  const waiting = { money: new Map<string, number>(), read: new Map<string, number>() };
  return {
    onWait({ priority, caller }) {
      const labels = { account, priority };
      const callers = waiting[priority];
      const name = caller?.name ?? "";
      const count = (by: number) => {
        const calls = (callers.get(name) ?? 0) + by;
        if (calls > 0) callers.set(name, calls);
        else callers.delete(name);
        metrics.bucketWaiting.inc(labels, by);
        metrics.bucketWaitingCallers.set(labels, callers.size);
      };
      count(1);
      return ({ waitedMs, refused: reason }) => {
        count(-1);
        if (reason === undefined) {
          const service = caller?.customer === undefined ? "service" : "customer";
          const caller_kind = caller ? service : "gateway";
          metrics.bucketWait.observe({ ...labels, caller_kind }, waitedMs / 1_000);
        } else metrics.bucketRefusals.inc({ ...labels, reason });
      };
    },
    onRejected() {
      metrics.bucketRejections.inc({ account });
    },
  };
}

export function lettersObserver(log: Logger): LettersObserver {
  return {
    onDiscarded({ operator, letter }) {
      log.warn({ operator, ...letter }, "dead letter discarded");
    },
  };
}

export function appendObserver(metrics: Metrics): AppendObserver {
  return {
    onAppend({ account, kind, source, outcome, conflict, durationMs }) {
      metrics.eventsAppended.inc({ account, kind, source, outcome });
      metrics.appendSeconds.observe(durationMs / 1_000);
      if (conflict) metrics.conflicts.inc({ account });
    },
  };
}
