import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { latencyBuckets } from "./edge-metrics.ts";

/** What is kept: events, dead letters, Redis. */
export function createStoreMetrics(prefix: string, registers: Registry[]) {
  return {
    eventsAppended: new Counter({
      name: `${prefix}events_appended_total`,
      help: "Entries given to the event log, by outcome: stored, duplicate, failed",
      labelNames: ["account", "kind", "source", "outcome"],
      registers,
    }),
    appendSeconds: new Histogram({
      name: `${prefix}event_append_duration_seconds`,
      help: "Duration of appending to the event log",
      buckets: latencyBuckets,
      registers,
    }),
    conflicts: new Counter({
      name: `${prefix}event_conflicts_total`,
      help: "Operations that were told two different final states",
      labelNames: ["account"],
      registers,
    }),
    unrecorded: new Counter({
      name: `${prefix}events_unrecorded_total`,
      help: "Answers that could not be written to the event log",
      labelNames: ["account"],
      registers,
    }),
    deadLetters: new Gauge({
      name: `${prefix}dead_letters`,
      help: "Callbacks that were not understood and wait for an operator",
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
      help: "How long Redis has been away; 0 while it answers; absent without Redis",
      registers: [],
    }),
    redisReplicas: new Gauge({
      name: `${prefix}redis_replicas`,
      help: "Replicas of Redis in sync, in a cluster of the primary that has the fewest; absent without Redis",
      registers: [],
    }),
    redisFailovers: new Counter({
      name: `${prefix}redis_failovers_total`,
      help: "Times that the Sentinels named another primary; absent without Redis",
      registers: [],
    }),
    redisSeconds: new Histogram({
      name: `${prefix}redis_command_duration_seconds`,
      help: "Time from a command to Redis to its answer",
      labelNames: ["command"],
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
      registers,
    }),
    redisErrors: new Counter({
      name: `${prefix}redis_command_errors_total`,
      help: "Commands to Redis that failed or were refused",
      labelNames: ["command"],
      registers,
    }),
    redisConnectionErrors: new Counter({
      name: `${prefix}redis_connection_errors_total`,
      help: "Errors of connections to Redis, failed tries to connect among them",
      registers,
    }),
  };
}
