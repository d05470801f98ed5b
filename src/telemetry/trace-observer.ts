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
      if (failing) log.warn({ err: error }, "traces cannot be handed over: spans are lost");
      else log.info("traces are handed over again");
    },
  };
}
