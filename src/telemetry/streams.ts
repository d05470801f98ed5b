import { Counter, Gauge, type Registry } from "prom-client";
import type { StreamObserver } from "../core/observed-streams.ts";

/** Metrics of live event streams at either edge. */
export function streamsTelemetry(registry: Registry): StreamObserver {
  const registers = [registry];
  const open = new Gauge({
    name: "payments_gateway_watchers",
    help: "Open live streams of events",
    labelNames: ["transport"],
    registers,
  });
  const events = new Counter({
    name: "payments_gateway_watch_events_delivered_total",
    help: "Events delivered to live streams",
    labelNames: ["transport"],
    registers,
  });
  const ends = new Counter({
    name: "payments_gateway_watches_ended_total",
    help: "Live streams that have ended, by reason: completed, left by the reader, or the code of an error",
    labelNames: ["transport", "reason"],
    registers,
  });
  const slowConsumers = new Counter({
    name: "payments_gateway_slow_consumers_cut_total",
    help: "Live streams cut off because their reader was too slow",
    labelNames: ["transport"],
    registers,
  });
  for (const transport of ["connect", "grpc", "grpc-web", "sse", "multipart", "websocket"]) {
    open.set({ transport }, 0);
    events.inc({ transport }, 0);
    slowConsumers.inc({ transport }, 0);
  }
  // Labels are bound once: an event is counted for each of its watchers.
  const deliveredBy = new Map<string, () => void>();
  return {
    onStream(transport) {
      open.inc({ transport });
      let delivered = deliveredBy.get(transport);
      if (!delivered) {
        const ofTransport = events.labels({ transport });
        delivered = () => ofTransport.inc();
        deliveredBy.set(transport, delivered);
      }
      return {
        delivered,
        ended(reason, detail) {
          open.dec({ transport });
          ends.inc({ transport, reason });
          if (detail === "SLOW_CONSUMER") slowConsumers.inc({ transport });
        },
      };
    },
  };
}
