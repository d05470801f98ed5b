import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { createEdgeMetrics } from "./edge-metrics.ts";
import { createStoreMetrics } from "./store-metrics.ts";

const prefix = "payments_gateway_";

export type Metrics = ReturnType<typeof createMetrics>;

/**
 * What the gateway counts. Labels are bounded: accounts of the configuration, endpoints, methods, codes
 * and verdicts; never ids, and no text of a caller.
 */
export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  // Gauges by the name of counters; the same is told by type under names without `_total`.
  for (const kind of ["handles", "requests", "resources"]) {
    registry.removeSingleMetric(`nodejs_active_${kind}_total`);
  }
  const registers = [registry];
  return {
    registry,
    ...createEdgeMetrics(prefix, registers),
    ...createStoreMetrics(prefix, registers),
    upstreamCalls: new Counter({
      name: `${prefix}upstream_requests_total`,
      help: "Calls to the payments service by endpoint and outcome (HTTP status or error code)",
      labelNames: ["account", "endpoint", "outcome"],
      registers,
    }),
    upstreamSeconds: new Histogram({
      name: `${prefix}upstream_request_duration_seconds`,
      help: "Duration of calls to the payments service, without the wait for a token",
      labelNames: ["endpoint"],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers,
    }),
    upstreamInFlight: new Gauge({
      name: `${prefix}upstream_requests_in_flight`,
      help: "Calls to the payments service that were sent and have no answer yet",
      labelNames: ["account"],
      registers,
    }),
    credentialsRefused: new Gauge({
      name: `${prefix}upstream_credentials_refused`,
      help: "1 while the payments service refuses the account's own credentials, else 0",
      labelNames: ["account"],
      registers,
    }),
    breaker: new Gauge({
      name: `${prefix}upstream_breaker_state`,
      help: "0 closed, 1 half open, 2 open: calls fail fast",
      labelNames: ["account", "calls"],
      registers,
    }),
    readFailures: new Counter({
      name: `${prefix}upstream_read_failures_total`,
      help: "Failed attempts to read, by what followed: a retry, or the reason why there was none",
      labelNames: ["account", "endpoint", "next"],
      registers,
    }),
    mixUps: new Counter({
      name: `${prefix}upstream_mix_ups_total`,
      help: "Answers that named another external_id than their request and were treated as no answer",
      labelNames: ["account"],
      registers,
    }),
    fieldFaults: new Counter({
      name: `${prefix}upstream_field_faults_total`,
      help: "Fields of answers and callbacks left unset because their type was unexpected, and objects left out because their shape was",
      labelNames: ["endpoint", "field"],
      registers,
    }),
    malformedTexts: new Counter({
      name: `${prefix}upstream_malformed_texts_total`,
      help: "Texts of answers and callbacks with invalid Unicode (half of a surrogate pair), read as U+FFFD",
      labelNames: ["endpoint", "field"],
      registers,
    }),
    locked: new Counter({
      name: `${prefix}sealed_locked_total`,
      help: "Reads of events and dead letters that no configured password decrypts",
      labelNames: ["account", "what"],
      registers,
    }),
    openIntents: new Gauge({
      name: `${prefix}money_calls_open`,
      help: "Calls that move money and are not settled, by state: unknown or pending",
      labelNames: ["account", "state"],
      registers,
    }),
    oldestUnknown: new Gauge({
      name: `${prefix}money_calls_oldest_unknown_seconds`,
      help: "Age of the oldest call that moves money whose outcome is unknown",
      labelNames: ["account"],
      registers,
    }),
    settled: new Counter({
      name: `${prefix}reconciliations_settled_total`,
      help: "Unknown outcomes and pending payments that were settled, by what settled them",
      labelNames: ["account", "by"],
      registers,
    }),
    probes: new Counter({
      name: `${prefix}reconciliation_probes_total`,
      help: "Look-ups of unknown outcomes and pending payments, by look-up method (rail) and outcome",
      labelNames: ["account", "rail", "outcome"],
      registers,
    }),
    givenUp: new Counter({
      name: `${prefix}reconciliations_given_up_total`,
      help: "Unknown outcomes and pending payments that were given up: an operator has to look at them",
      labelNames: ["account"],
      registers,
    }),
    bucketWait: new Histogram({
      name: `${prefix}rate_limit_wait_seconds`,
      help: "How long calls waited for a token of the account's rate budget, without refused calls, by kind of caller: service, customer, or gateway for its own work",
      labelNames: ["account", "priority", "caller_kind"],
      buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5],
      registers,
    }),
    bucketWaiting: new Gauge({
      name: `${prefix}rate_limit_waiting`,
      help: "Calls that wait for a token of the rate budget",
      labelNames: ["account", "priority"],
      registers,
    }),
    bucketWaitingCallers: new Gauge({
      name: `${prefix}rate_limit_waiting_callers`,
      help: "Callers (API keys, subjects of JWTs, customers) that take turns at the rate budget now",
      labelNames: ["account", "priority"],
      registers,
    }),
    bucketRefusals: new Counter({
      name: `${prefix}rate_limit_refusals_total`,
      help: "Calls that got no token, by reason: RESOURCE_EXHAUSTED when the rate budget was used up",
      labelNames: ["account", "priority", "reason"],
      registers,
    }),
    bucketRejections: new Counter({
      name: `${prefix}rate_limit_upstream_rejections_total`,
      help: "Calls that the payments service refused with 429 Too Many Requests",
      labelNames: ["account"],
      registers,
    }),
    bucketTokens: new Gauge({
      name: `${prefix}rate_limit_remaining`,
      help: "Tokens left in the account's rate budget",
      labelNames: ["account"],
      registers,
    }),
    bucketShared: new Gauge({
      name: `${prefix}rate_limit_shared`,
      help: "1 while the rate budget is shared through Redis, 0 while this replica uses its own share",
      labelNames: ["account"],
      registers,
    }),
    bucketLimit: new Gauge({
      name: `${prefix}rate_limit_limit`,
      help: "Requests a second that the payments service allows the account",
      labelNames: ["account"],
      registers,
    }),
    ready: new Gauge({
      name: `${prefix}ready`,
      help: "1 while the gateway is ready for traffic (as /readyz says), else 0",
      registers,
    }),
    traceSpans: new Counter({
      name: `${prefix}trace_spans_total`,
      help: "Trace spans that ended, by outcome: exported, failed, dropped",
      labelNames: ["outcome"],
      registers,
    }),
    buildInfo: new Gauge({
      name: `${prefix}build_info`,
      help: "Always 1, with the versions as labels",
      labelNames: ["version", "node_version"],
      registers,
    }),
    connectionsCut: new Counter({
      name: `${prefix}connections_cut_total`,
      help: "Connections, requests and streams cut off by a limit, by listener and limit",
      labelNames: ["listener", "limit"],
      registers,
    }),
    callsRefused: new Counter({
      name: `${prefix}calls_refused_total`,
      help: "Calls refused because of overload, by kind: money, other, or unknown when the body was not read yet",
      labelNames: ["listener", "kind"],
      registers,
    }),
    callsInFlight: new Gauge({
      name: `${prefix}calls_in_flight`,
      help: "Calls in progress, without streams",
      registers,
    }),
  };
}
