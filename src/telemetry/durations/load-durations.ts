import type { StartDurations } from "./durations.ts";
import type { DurationsSettings } from "./settings.ts";

/** OpenTelemetry's SDK is loaded only when something is to be sent. */
export async function loadDurations(
  settings: DurationsSettings | undefined,
): Promise<StartDurations | undefined> {
  if (!settings) return undefined;
  const { startSdkDurations } = await import("./sdk-durations.ts");
  return (report) => startSdkDurations(settings, report);
}
