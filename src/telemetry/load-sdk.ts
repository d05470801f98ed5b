import type { Report } from "../report.ts";
import type { RunningDurations } from "./sdk-durations.ts";
import type { DurationsSettings, TracingSettings } from "./tracing/settings.ts";
import { noTracing, type RunningTracing } from "./tracing/tracing.ts";

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
