import type { OtlpSettings } from "../tracing/settings.ts";

/** Where durations are sent, as the OTEL_* variables set it. */
export interface DurationsSettings {
  readonly exporters: readonly ("otlp" | "console")[];
  readonly otlp: OtlpSettings;
  readonly resource: Readonly<Record<string, string>>;
  /** Whether an export covers everything since the start, or only since the last export. */
  readonly temporality: "cumulative" | "delta";
  /** Time from one export to the next. */
  readonly intervalMs: number;
  /** Longest that an export may take. */
  readonly timeoutMs: number;
}
