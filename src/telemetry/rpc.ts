import { Counter, Gauge, type Registry } from "prom-client";
import type { RpcObserver } from "../rpc/call-record.ts";
import type { DurationHistograms } from "./duration-histogram.ts";
import type { Durations } from "./durations/durations.ts";
import { latencyBuckets } from "./registry.ts";
import { isServerFailure, rpcStatusOf, rpcSystemOf } from "./tracing/rpc-end.ts";

/** Calls at the RPC edge, which logs them itself. */
export function rpcTelemetry(
  registry: Registry,
  histogram: DurationHistograms,
  onInternalError: () => void,
  durations: Durations | undefined,
): RpcObserver {
  const registers = [registry];
  const requests = new Counter({
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
  const inFlight = new Gauge({
    name: "payments_gateway_rpc_requests_in_flight",
    help: "RPC calls in progress, streams included",
    labelNames: ["service", "method"],
    registers,
  });
  return {
    onCall({ service, method, unary, protocol }) {
      inFlight.inc({ service, method });
      return ({ code, durationMs, traceparent }) => {
        inFlight.dec({ service, method });
        requests.inc({ service, method, code });
        if (code === "INTERNAL") onInternalError();
        if (unary) seconds({ service, method, code }, durationMs, traceparent);
        durations?.rpcServerCall(durationMs, {
          "rpc.system.name": rpcSystemOf(protocol),
          "rpc.method": `${service}/${method}`,
          "rpc.status_code": rpcStatusOf(protocol, code),
          "rpc.response.status_code": rpcStatusOf(protocol, code),
          "error.type": isServerFailure(code) ? code : undefined,
        });
      };
    },
  };
}
