import type { Logger } from "pino";
import { Counter, type Registry } from "prom-client";
import type { CallbackObserver, Verdict } from "../callbacks/receiver.ts";
import { allKinds, kinds } from "../model/kinds.ts";
import { byKey } from "./bound.ts";
import type { DurationHistograms } from "./duration-histogram.ts";
import { conflictMessage } from "./events.ts";
import type { ReportFieldFault } from "./field-faults.ts";
import { createRefusalLog } from "./refusal-log.ts";
import { latencyBuckets } from "./registry.ts";

/** Metrics and logs of received callbacks. */
export function callbacksTelemetry(
  registry: Registry,
  log: Logger,
  accounts: readonly string[],
  reportFieldFault: ReportFieldFault,
  histogram: DurationHistograms,
): CallbackObserver {
  const registers = [registry];
  const verdicts = new Counter({
    name: "payments_gateway_callbacks_total",
    help: "Callbacks received, by verdict",
    labelNames: ["account", "resource", "verdict"],
    registers,
  });
  const seconds = histogram({
    name: "payments_gateway_callback_duration_seconds",
    help: "Time from a callback's headers to its answer",
    labelNames: ["resource", "verdict"],
    buckets: latencyBuckets,
  });
  const secondsOf = byKey((resource: string) =>
    byKey((verdict: string) => seconds.bind({ resource, verdict })),
  );
  const usual = ["stored", "duplicate", "bad_signature", "dead_letter", "unavailable"];
  for (const account of accounts) {
    for (const { resource } of allKinds.map((kind) => kinds[kind])) {
      for (const verdict of usual) verdicts.inc({ account, resource, verdict }, 0);
    }
  }
  const refusals = createRefusalLog((record, message) => log.warn(record, message));
  return {
    onVerdict({ verdict, account = "", resource = "", conflict, error, ...received }) {
      const { durationMs, traceparent, ...about } = received;
      verdicts.inc({ account, resource, verdict });
      secondsOf(resource)(verdict)(durationMs, traceparent);
      const level = verdict === "stored" || verdict === "duplicate" ? "info" : "warn";
      const rounded = Math.round(durationMs * 1_000) / 1_000;
      const entry = { account, resource, verdict, durationMs: rounded, ...about, err: error };
      // Anyone can send these, in any number: their log records are limited.
      if (unverified.has(verdict)) refusals.add(`${account} ${resource} ${verdict}`, entry);
      else log[level](entry, "callback");
      if (conflict) log.error({ account, ...about }, conflictMessage);
    },
    onFieldFault({ account, resource, ...fault }) {
      reportFieldFault(fault, { endpoint: `callback ${resource}`, about: { account, resource } });
    },
  };
}

/** Verdicts on requests without a verified signature. */
const unverified: ReadonlySet<Verdict> = new Set([
  "bad_signature",
  "too_large",
  "slow",
  "aborted",
  "not_found",
  "method_not_allowed",
  "overloaded",
]);
