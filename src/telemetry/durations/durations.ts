import type { Report } from "../../report.ts";
import type { Attributes } from "../tracing/attributes.ts";

/**
 * Records durations by OpenTelemetry's semantic conventions and sends them to a collector, beside
 * the metrics that Prometheus reads, if the environment turns it on. Attribute values are few and
 * known beforehand.
 */
export interface Durations {
  /** `rpc.server.call.duration` */
  rpcServerCall(durationMs: number, attributes: Attributes): void;
  /** `http.server.request.duration` */
  httpServerRequest(durationMs: number, attributes: Attributes): void;
  /** `http.client.request.duration` */
  httpClientRequest(durationMs: number, attributes: Attributes): void;
}

/** Durations that are recorded and sent until `shutdown`. */
export interface RunningDurations extends Durations {
  /** Sends what is recorded, within `timeoutMs`. Never rejects. */
  shutdown(timeoutMs: number): Promise<void>;
}

export type StartDurations = (report: Report) => RunningDurations;
