import type { Report } from "../../report.ts";
import type { TracingSettings } from "./settings.ts";
import { noTracing, type RunningTracing } from "./tracing.ts";

/** OpenTelemetry's SDK is loaded only when something is to be traced. */
export async function createTracing(
  settings: TracingSettings | undefined,
  report: Report,
): Promise<RunningTracing> {
  if (!settings) return noTracing;
  const { createSdkTracing } = await import("./sdk-tracing.ts");
  return createSdkTracing(settings, report);
}
