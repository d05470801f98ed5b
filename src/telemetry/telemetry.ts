import { type Handlers, type Logger, type Report, reportTo } from "../report.ts";
import { budget } from "./budget.ts";
import { edges } from "./edges.ts";
import { ledger } from "./ledger.ts";
import { createMetrics, type TelemetryContext } from "./metrics.ts";
import { processes } from "./process.ts";
import type { RunningDurations } from "./sdk-durations.ts";
import { upstream } from "./upstream.ts";

export type Telemetry = ReturnType<typeof createTelemetry>;

/**
 * Turns the facts that the gateway reports into metrics and log records, one file per area.
 * Label values are bounded: configured accounts, endpoints, methods, codes and verdicts; never ids
 * or a caller's text. Most counters of an account start at 0, so that their first increase is
 * visible.
 */
export function createTelemetry(
  log: Logger,
  accounts: readonly string[],
  startDurations?: (report: Report) => RunningDurations,
) {
  const metrics = createMetrics();
  const durations = startDurations?.((...observed) => report(...observed));
  const context: TelemetryContext = { metrics, log, accounts, durations };
  // The compiler checks that each observation has its handler.
  const handlers: Handlers = {
    ...edges(context),
    ...upstream(context),
    ...budget(context),
    ...ledger(context),
    ...processes(context),
  };
  const report: Report = reportTo(handlers);
  return { metrics, durations, report };
}
