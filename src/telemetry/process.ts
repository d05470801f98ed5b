import { Gauge, type Registry } from "prom-client";
import { version } from "../version.ts";

/** Whether the process is ready, and its versions. */
export function processTelemetry(registry: Registry) {
  const registers = [registry];
  const ready = new Gauge({
    name: "payments_gateway_ready",
    help: "1 while the gateway is ready for traffic (as /readyz says), else 0",
    registers,
  });
  const buildInfo = new Gauge({
    name: "payments_gateway_build_info",
    help: "Always 1, with the versions as labels",
    labelNames: ["version", "node_version"],
    registers,
  });
  buildInfo.set({ version, node_version: process.versions.node }, 1);
  return {
    refresh(isReady: boolean): void {
      ready.set(isReady ? 1 : 0);
    },
  };
}
