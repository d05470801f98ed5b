import type { OldNames } from "./attributes.ts";

/** How telemetry is handed over to a collector. */
export interface OtlpSettings {
  /** Whole address, `/v1/traces` or the like included. */
  readonly url: string;
  /** May hold a secret. */
  readonly headers: Readonly<Record<string, string>>;
  readonly compression: "none" | "gzip";
  readonly timeoutMs: number;
  /** PEM texts. */
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string };
}

/** Where spans go and which, as the OTEL_* variables say it. */
export interface TracingSettings {
  readonly exporters: readonly ("otlp" | "console")[];
  readonly otlp: OtlpSettings;
  readonly resource: Readonly<Record<string, string>>;
  readonly sampler: {
    /** Whether the sampling of the caller's trace is followed where there is one. */
    readonly parentBased: boolean;
    /** Share of the traces that begin here, 0 to 1. */
    readonly ratio: number;
  };
  /** Conventions whose old names are kept: beside the present ones, where both can stand. */
  readonly oldNames: readonly OldNames[];
  readonly propagators: readonly ("tracecontext" | "baggage")[];
  readonly batch: {
    readonly delayMs: number;
    readonly timeoutMs: number;
    readonly maxQueue: number;
    readonly maxBatch: number;
  };
}
