import type { OldNames } from "./attributes.ts";

/** How telemetry is sent to a collector. */
export interface OtlpSettings {
  /** Complete URL, with its path (such as `/v1/traces`). */
  readonly url: string;
  /** May hold a secret. */
  readonly headers: Readonly<Record<string, string>>;
  readonly compression: "none" | "gzip";
  readonly timeoutMs: number;
  /** PEM texts. */
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string };
}

/** What traces and durations have in common. */
interface SignalSettings {
  readonly otlp: OtlpSettings;
  readonly resource: Readonly<Record<string, string>>;
}

/** Which spans are sent and where, as the OTEL_* variables set it. */
export interface TracingSettings extends SignalSettings {
  readonly sampler: {
    /** Whether the sampling decision of the caller's trace is followed, if there is one. */
    readonly parentBased: boolean;
    /** Share of the traces that begin here and are sampled, 0 to 1. */
    readonly ratio: number;
  };
  /** Conventions whose old names are used too: attributes get both, span names only the old one. */
  readonly oldNames: readonly OldNames[];
  readonly batch: { readonly delayMs: number; readonly maxQueue: number };
}

/** Where durations are sent, as the OTEL_* variables set it. */
export interface DurationsSettings extends SignalSettings {
  /** Whether an export covers everything since the start, or only since the last export. */
  readonly temporality: "cumulative" | "delta";
  /** Time from one export to the next. */
  readonly intervalMs: number;
}
