import { type Handlers, type Logger, type Report, reportTo } from "../report.ts";
import { edges } from "./edges.ts";
import { ledger } from "./ledger.ts";
import { createMetrics, type TelemetryContext } from "./metrics.ts";
import { processes } from "./process.ts";
import { scraped } from "./scraped.ts";
import type { RunningDurations } from "./sdk-durations.ts";
import type { DurationsSettings, TracingSettings } from "./tracing/settings.ts";
import { noTracing, type RunningTracing } from "./tracing/tracing.ts";
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
    ...ledger(context),
    ...processes(context),
  };
  const report: Report = reportTo(handlers);
  return { metrics, durations, report, refresh: scraped(context) };
}

/** OpenTelemetry's SDK is loaded only when something is to be traced. */
export async function createTracing(
  settings: TracingSettings | undefined,
  report: Report,
): Promise<RunningTracing> {
  if (!settings) return noTracing;
  const { createSdkTracing } = await import("./tracing/sdk-tracing.ts");
  return createSdkTracing(settings, report);
}

/** The same for durations. @returns a function that begins to send them */
export async function loadDurations(
  settings: DurationsSettings | undefined,
): Promise<((report: Report) => RunningDurations) | undefined> {
  if (!settings) return undefined;
  const { startSdkDurations } = await import("./sdk-durations.ts");
  return (report) => startSdkDurations(settings, report);
}
