import type { Logger } from "pino";
import type { Metrics } from "./metrics.ts";
import type { TracingObserver } from "./tracing/observer.ts";

/** What tracing tells, as metrics; the log hears when spans begin to be lost and when that is over. */
export function traceObserver(metrics: Metrics, log: Logger): TracingObserver {
  let failing = false;
  return {
    onSpans({ outcome, count, error }) {
      metrics.traceSpans.inc({ outcome }, count);
      if (outcome === "dropped" || failing === (outcome === "failed")) return;
      failing = outcome === "failed";
      if (failing) log.warn({ err: error }, "trace export failing: spans are dropped");
      else log.info("trace export works again");
    },
  };
}
