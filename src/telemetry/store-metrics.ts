import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { latencyBuckets } from "./edge-metrics.ts";

/** What is kept: events, dead letters, Redis. */
export function createStoreMetrics(prefix: string, registers: Registry[]) {
  return {
    eventsAppended: new Counter({
      name: `${prefix}events_appended_total`,
      help: "Writes to the event log, by outcome: stored, duplicate, failed",
      labelNames: ["account", "kind", "source", "outcome"],
      registers,
    }),
    appendSeconds: new Histogram({
      name: `${prefix}event_append_duration_seconds`,
      help: "Duration of writes to the event log",
      buckets: latencyBuckets,
      registers,
    }),
    conflicts: new Counter({
      name: `${prefix}event_conflicts_total`,
      help: "Operations for which two different final states were received",
      labelNames: ["account"],
      registers,
    }),
    unrecorded: new Counter({
      name: `${prefix}events_unrecorded_total`,
      help: "Answers of the payments service that could not be written to the event log",
      labelNames: ["account"],
      registers,
    }),
    deadLetters: new Gauge({
      name: `${prefix}dead_letters`,
      help: "Dead letters: callbacks that were not understood and wait for an operator",
      labelNames: ["account"],
      registers,
    }),
    redisUp: new Gauge({
      name: `${prefix}redis_up`,
      help: "1 while Redis answers for every account, else 0; absent without Redis",
      registers: [],
    }),
    redisAwaySeconds: new Gauge({
      name: `${prefix}redis_away_seconds`,
      help: "How long Redis has been unreachable; 0 while it answers; absent without Redis",
      registers: [],
    }),
    redisReplicas: new Gauge({
      name: `${prefix}redis_replicas`,
      help: "Redis replicas in sync, in a cluster those of the primary with the fewest; absent without Redis",
      registers: [],
    }),
    redisFailovers: new Counter({
      name: `${prefix}redis_failovers_total`,
      help: "Redis failovers: how often the Sentinels named a new primary; absent without Redis",
      registers: [],
    }),
    redisSeconds: new Histogram({
      name: `${prefix}redis_command_duration_seconds`,
      help: "Duration of Redis commands",
      labelNames: ["command"],
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
      registers,
    }),
    redisErrors: new Counter({
      name: `${prefix}redis_command_errors_total`,
      help: "Redis commands that failed or were refused",
      labelNames: ["command"],
      registers,
    }),
    redisConnectionErrors: new Counter({
      name: `${prefix}redis_connection_errors_total`,
      help: "Errors of Redis connections, failed attempts to connect included",
      registers,
    }),
  };
}
