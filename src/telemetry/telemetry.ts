import { type Handlers, type Logger, type Report, reportTo } from "../report.ts";
import { edges } from "./edges.ts";
import { ledger } from "./ledger.ts";
import { createMetrics } from "./metrics.ts";
import { processes } from "./process.ts";
import { createRepeatedLog } from "./repeated-log.ts";
import { scraped } from "./scraped.ts";
import type { DurationsSettings, TracingSettings } from "./tracing/settings.ts";
import { noTracing, type RunningTracing } from "./tracing/tracing.ts";
import { upstream } from "./upstream.ts";

export type Telemetry = Awaited<ReturnType<typeof createTelemetry>>;

/**
 * Turns the facts that the gateway reports into metrics and log records, one file per area.
 * Label values are bounded: configured accounts, endpoints, methods, codes and verdicts; never ids
 * or a caller's text. Most counters of an account start at 0, so that their first increase is
 * visible.
 * @param settings of durations that are sent to a collector as well
 */
export async function createTelemetry(
  log: Logger,
  accounts: readonly string[],
  settings?: DurationsSettings,
) {
  const metrics = createMetrics();
  const repeated = createRepeatedLog(log.warn);
  const report: Report = (...observed) => reported(...observed);
  // OpenTelemetry's SDK is loaded only when something is to be sent.
  const durations =
    settings && (await import("./sdk-durations.ts")).startSdkDurations(settings, report);
  const context = { metrics, log, repeated, accounts, durations };
  // The compiler checks that each observation has its handler.
  const handlers: Handlers = {
    ...edges(context),
    ...upstream(context),
    ...ledger(context),
    ...processes(context),
  };
  const reported = reportTo(handlers);
  return { metrics, durations, report: reported, refresh: scraped(context) };
}

/** Tracing, if there are settings of it. */
export async function createTracing(
  settings: TracingSettings | undefined,
  report: Report,
): Promise<RunningTracing> {
  if (!settings) return noTracing;
  const { createSdkTracing } = await import("./tracing/sdk-tracing.ts");
  return createSdkTracing(settings, report);
}
