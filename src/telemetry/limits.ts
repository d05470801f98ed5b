import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import type { LimitObserver } from "../net/observer.ts";

/** Counts what limits cut, calls that overload refuses, and calls in flight. */
export function limitsTelemetry(registry: Registry, log: Logger) {
  const registers = [registry];
  const connectionsCut = new Counter({
    name: "payments_gateway_connections_cut_total",
    help: "Connections, requests and streams cut off by a limit, by listener and limit",
    labelNames: ["listener", "limit"],
    registers,
  });
  const callsRefused = new Counter({
    name: "payments_gateway_calls_refused_total",
    help: "Calls refused because of overload, by kind: money, watch, other, or unknown when the body was not read yet",
    labelNames: ["listener", "kind"],
    registers,
  });
  const callsInFlight = new Gauge({
    name: "payments_gateway_calls_in_flight",
    help: "Calls in progress, without streams",
    registers,
  });

  function observerOf(listener: "public" | "rpc" | "admin"): LimitObserver {
    // At most one record in 10 s: a flood of requests must not flood the log.
    let quietUntilMs = 0;
    const warn = (about: object, message: string) => {
      const now = Date.now();
      if (now < quietUntilMs) return;
      quietUntilMs = now + 10_000;
      log.warn({ listener, ...about }, message);
    };
    // Labels are bound once: to refuse a call must cost next to nothing.
    const refused = {
      money: callsRefused.labels(listener, "money"),
      other: callsRefused.labels(listener, "other"),
      unknown: callsRefused.labels(listener, "unknown"),
      watch: callsRefused.labels(listener, "watch"),
    };
    for (const refusals of Object.values(refused)) refusals.inc(0);
    return {
      onCut(limit) {
        connectionsCut.inc({ listener, limit });
        warn({ limit }, "a limit cut a connection; more are counted, not logged");
      },
      onRefused(kind) {
        if (kind !== "exempt") refused[kind].inc();
        warn({ kind }, "overload: calls are refused; more are counted, not logged");
      },
    };
  }

  return {
    observerOf,
    refresh(inFlight: number): void {
      callsInFlight.set(inFlight);
    },
  };
}
