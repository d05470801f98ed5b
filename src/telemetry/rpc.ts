import type { Registry } from "prom-client";
import type { RpcObserver } from "../rpc/call-record.ts";
import { BoundCounter, BoundGauge, byKey } from "./bound.ts";
import type { DurationHistograms } from "./duration-histogram.ts";
import type { Durations } from "./durations/durations.ts";
import { latencyBuckets } from "./registry.ts";
import { isServerFailure, rpcStatusOf, rpcSystemOf } from "./tracing/rpc-end.ts";

/** Metrics of RPC calls; the RPC edge logs them itself. */
export function rpcTelemetry(
  registry: Registry,
  histogram: DurationHistograms,
  onInternalError: () => void,
  durations: Durations | undefined,
): RpcObserver {
  const registers = [registry];
  const requests = new BoundCounter({
    name: "payments_gateway_rpc_requests_total",
    help: "RPC calls that have ended, streams included, by status code",
    labelNames: ["service", "method", "code"],
    registers,
  });
  const seconds = histogram({
    name: "payments_gateway_rpc_request_duration_seconds",
    help: "Duration of unary RPC calls",
    labelNames: ["service", "method", "code"],
    buckets: latencyBuckets,
  });
  const inFlight = new BoundGauge({
    name: "payments_gateway_rpc_requests_in_flight",
    help: "RPC calls in progress, streams included",
    labelNames: ["service", "method"],
    registers,
  });
  const methodsOf = byKey((service: string) =>
    byKey((method: string) => ({
      inFlight: inFlight.bind({ service, method }),
      requests: byKey((code: string) => requests.bind({ service, method, code })),
      seconds: byKey((code: string) => seconds.bind({ service, method, code })),
    })),
  );
  return {
    onCall({ service, method, unary, protocol }) {
      const series = methodsOf(service)(method);
      series.inFlight.value += 1;
      return ({ code, durationMs, isCallersMistake, traceparent }) => {
        series.inFlight.value -= 1;
        series.requests(code).value += 1;
        if (code === "INTERNAL" && !isCallersMistake) onInternalError();
        if (unary) series.seconds(code)(durationMs, traceparent);
        durations?.rpcServerCall(durationMs, {
          "rpc.system.name": rpcSystemOf(protocol),
          "rpc.method": `${service}/${method}`,
          "rpc.status_code": rpcStatusOf(protocol, code),
          "rpc.response.status_code": rpcStatusOf(protocol, code),
          "error.type": isServerFailure(code) && !isCallersMistake ? code : undefined,
        });
      };
    },
  };
}
