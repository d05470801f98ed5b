import type { Logger } from "pino";
import { Counter, type Registry } from "prom-client";
import type { DurationsObserver } from "./durations/durations.ts";

/** Counts metric exports to a collector, and logs when they start to fail and work again. */
export function metricExportsTelemetry(registry: Registry, log: Logger): DurationsObserver {
  const rounds = new Counter({
    name: "payments_gateway_metric_exports_total",
    help: "Rounds of metrics sent to an OpenTelemetry collector, by outcome: exported, failed",
    labelNames: ["outcome"],
    registers: [registry],
  });
  for (const outcome of ["exported", "failed"]) rounds.inc({ outcome }, 0);
  let failing = false;
  return {
    onExport({ outcome, error }) {
      rounds.inc({ outcome });
      if (failing === (outcome === "failed")) return;
      failing = outcome === "failed";
      if (failing) log.warn({ err: error }, "metric export failing: the next round is tried");
      else log.info("metric export works again");
    },
  };
}
