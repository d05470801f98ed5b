import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { RpcObserver } from "../rpc/call-record.ts";
import { latencyBuckets } from "./registry.ts";

/** Calls at the RPC edge, which logs them itself. */
export function rpcTelemetry(registry: Registry, onInternalError: () => void): RpcObserver {
  const registers = [registry];
  const requests = new Counter({
    name: "payments_gateway_rpc_requests_total",
    help: "RPC calls that have ended, streams included, by status code",
    labelNames: ["service", "method", "code"],
    registers,
  });
  const seconds = new Histogram({
    name: "payments_gateway_rpc_request_duration_seconds",
    help: "Duration of unary RPC calls",
    labelNames: ["service", "method", "code"],
    buckets: latencyBuckets,
    registers,
  });
  const inFlight = new Gauge({
    name: "payments_gateway_rpc_requests_in_flight",
    help: "RPC calls in progress, streams included",
    labelNames: ["service", "method"],
    registers,
  });
  return {
    onCall({ service, method, unary }) {
      inFlight.inc({ service, method });
      return ({ code, durationMs }) => {
        inFlight.dec({ service, method });
        requests.inc({ service, method, code });
        if (code === "INTERNAL") onInternalError();
        if (unary) seconds.observe({ service, method, code }, durationMs / 1_000);
      };
    },
  };
}
