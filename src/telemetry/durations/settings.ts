import type { OtlpSettings } from "../tracing/settings.ts";

/** Where durations go, as the OTEL_* variables say it. */
export interface DurationsSettings {
  readonly exporters: readonly ("otlp" | "console")[];
  readonly otlp: OtlpSettings;
  readonly resource: Readonly<Record<string, string>>;
  /** Whether a round tells of all since the start, or of what came since the last one. */
  readonly temporality: "cumulative" | "delta";
  /** From one round to the next. */
  readonly intervalMs: number;
  /** Longest that a round may take. */
  readonly timeoutMs: number;
}
