import type { Attributes } from "../tracing/attributes.ts";

/**
 * Durations by OpenTelemetry's semantic conventions, sent to a collector where the environment asks
 * for it, beside the metrics that Prometheus reads. Attributes have few values, known beforehand.
 */
export interface Durations {
  /** `rpc.server.call.duration` */
  rpcServerCall(durationMs: number, attributes: Attributes): void;
  /** `http.server.request.duration` */
  httpServerRequest(durationMs: number, attributes: Attributes): void;
  /** `http.client.request.duration` */
  httpClientRequest(durationMs: number, attributes: Attributes): void;
}

/** Durations that are recorded, until they are shut down. */
export interface RunningDurations extends Durations {
  /** Sends what is recorded, for as long as given at most. Never rejects. */
  shutdown(timeoutMs: number): Promise<void>;
}

/** What the sending tells its surroundings, for metrics and logs. */
export interface DurationsObserver {
  onExport(round: { readonly outcome: "exported" | "failed"; readonly error?: unknown }): void;
}

export type StartDurations = (observer: DurationsObserver) => RunningDurations;
