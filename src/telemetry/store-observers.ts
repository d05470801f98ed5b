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
  return {
    onWait(priority) {
      metrics.bucketWaiting.inc({ account, priority });
      return ({ waitedMs, refused: reason }) => {
        metrics.bucketWaiting.dec({ account, priority });
        if (reason === undefined) {
          metrics.bucketWait.observe({ account, priority }, waitedMs / 1_000);
        } else metrics.bucketRefusals.inc({ account, priority, reason });
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
