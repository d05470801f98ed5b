import type { Logger } from "pino";
import { Counter, type Registry } from "prom-client";
import type { TracingObserver } from "./tracing/observer.ts";

/** Counts trace spans, and logs when their export starts to fail and works again. */
export function tracesTelemetry(registry: Registry, log: Logger): TracingObserver {
  const spans = new Counter({
    name: "payments_gateway_trace_spans_total",
    help: "Trace spans that ended, by outcome: exported, failed, dropped",
    labelNames: ["outcome"],
    registers: [registry],
  });
  for (const outcome of ["exported", "failed", "dropped"]) spans.inc({ outcome }, 0);
  let failing = false;
  return {
    onSpans({ outcome, count, error }) {
      spans.inc({ outcome }, count);
      if (outcome === "dropped" || failing === (outcome === "failed")) return;
      failing = outcome === "failed";
      if (failing) log.warn({ err: error }, "trace export failing: spans are dropped");
      else log.info("trace export works again");
    },
  };
}
