import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import type { UpstreamObserver } from "../upstream/upstream.ts";
import { BoundCounter, BoundGauge, byKey } from "./bound.ts";
import type { DurationHistograms } from "./duration-histogram.ts";
import type { Durations } from "./durations/durations.ts";
import type { ReportFieldFault } from "./field-faults.ts";

/** Metrics and logs of calls to the payments service. @returns the observer of an account */
export function upstreamTelemetry(
  registry: Registry,
  log: Logger,
  accounts: readonly string[],
  reportFieldFault: ReportFieldFault,
  histogram: DurationHistograms,
  durations: Durations | undefined,
): (account: string) => UpstreamObserver {
  const registers = [registry];
  const calls = new BoundCounter({
    name: "payments_gateway_upstream_requests_total",
    help: "Calls to the payments service by endpoint and outcome (HTTP status or error code)",
    labelNames: ["account", "endpoint", "outcome"],
    registers,
  });
  const seconds = histogram({
    name: "payments_gateway_upstream_request_duration_seconds",
    help: "Duration of calls to the payments service, without the wait for a token",
    labelNames: ["endpoint"],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  });
  const inFlight = new BoundGauge({
    name: "payments_gateway_upstream_requests_in_flight",
    help: "Calls to the payments service that were sent and have no answer yet",
    labelNames: ["account"],
    registers,
  });
  const credentialsRefused = new Gauge({
    name: "payments_gateway_upstream_credentials_refused",
    help: "1 while the payments service refuses the account's own credentials, else 0",
    labelNames: ["account"],
    registers,
  });
  const breaker = new Gauge({
    name: "payments_gateway_upstream_breaker_state",
    help: "0 closed, 1 half open, 2 open: calls fail fast",
    labelNames: ["account", "calls"],
    registers,
  });
  const readFailures = new Counter({
    name: "payments_gateway_upstream_read_failures_total",
    help: "Failed attempts to read, by what followed: a retry, or the reason why there was none",
    labelNames: ["account", "endpoint", "next"],
    registers,
  });
  const mixUps = new Counter({
    name: "payments_gateway_upstream_mix_ups_total",
    help: "Answers that named another external_id than their request and were treated as no answer",
    labelNames: ["account"],
    registers,
  });
  for (const account of accounts) {
    inFlight.bind({ account });
    credentialsRefused.set({ account }, 0);
    for (const ofCalls of ["money", "other"]) breaker.set({ account, calls: ofCalls }, 0);
    mixUps.inc({ account }, 0);
  }
  const secondsOf = byKey((endpoint: string) => seconds.bind({ endpoint }));
  const callsOf = byKey((account: string) =>
    byKey((endpoint: string) =>
      byKey((outcome: string) => calls.bind({ account, endpoint, outcome })),
    ),
  );
  const underWayOf = byKey((account: string) => inFlight.bind({ account }));
  return (account) => ({
    onInFlight(change) {
      underWayOf(account).value += change;
    },
    onCall({ endpoint, outcome, durationMs, http, traceparent }) {
      log.debug({ account, endpoint, outcome, durationMs }, "upstream");
      callsOf(account)(endpoint)(outcome).value += 1;
      secondsOf(endpoint)(durationMs, traceparent);
      durations?.httpClientRequest(durationMs, http());
    },
    onFieldFault({ endpoint, ...fault }) {
      reportFieldFault(fault, { endpoint, about: { account, endpoint } });
    },
    onMixUp({ endpoint }) {
      mixUps.inc({ account });
      log.error(
        { account, endpoint },
        "answer names another external_id than its request: treated as no answer. The service or a proxy mixes answers up; each request gets its own connection for 10 minutes",
      );
    },
    onBreaker({ calls, state }) {
      breaker.set({ account, calls }, breakerLevels[state]);
      const level = state === "open" ? "warn" : state === "closed" ? "info" : "debug";
      log[level]({ account, calls, state }, breakerMessages[state]);
    },
    onReadFailed({ endpoint, next }) {
      readFailures.inc({ account, endpoint, next });
    },
    onCredentials(accepted) {
      credentialsRefused.set({ account }, accepted ? 0 : 1);
      if (accepted) return;
      log.error(
        { account },
        "the payments service refuses the account's credentials: check its login and password",
      );
    },
  });
}

const breakerMessages = {
  open: "the payments service keeps failing: calls to it fail fast; retrying",
  halfOpen: "trying whether the payments service answers again",
  closed: "the payments service answers again",
} as const;

const breakerLevels = { closed: 0, halfOpen: 1, open: 2 } as const;
