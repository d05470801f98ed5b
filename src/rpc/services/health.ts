import type { DescService } from "@bufbuild/protobuf";
import { GatewayError } from "../../errors.ts";
import {
  type Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "../../gen/grpc/health/v1/health_pb.ts";
import { spreadOverTurns } from "../../net/spread-over-turns.ts";
import type { OpenCall } from "../methods.ts";
import type { Implementation } from "./routes.ts";

/**
 * `grpc.health.v1.Health` for the given services and, as the empty name, for the server itself.
 */
export function createHealth(services: readonly DescService[]) {
  const names = ["", ...services.map((service) => service.typeName)];
  const known = new Set(names);
  /** Watches that wait for a change. */
  const waiting = new Set<() => void>();
  const inTurn = spreadOverTurns(32);
  let serving = true;
  let down = false;

  const current = () => (serving ? ServingStatus.SERVING : ServingStatus.NOT_SERVING);

  return {
    service: {
      check({ service }) {
        if (!known.has(service)) throw new GatewayError("NOT_FOUND", "unknown service");
        return { status: current() };
      },
      list: () => ({
        statuses: Object.fromEntries(names.map((name) => [name, { status: current() }])),
      }),
      async *watch({ service }, { signal }) {
        let sent: ServingStatus | undefined;
        for (;;) {
          const status = known.has(service) ? current() : ServingStatus.SERVICE_UNKNOWN;
          if (status !== sent) {
            sent = status;
            yield { status };
          } else if (down) {
            throw new GatewayError("UNAVAILABLE", "the gateway is shutting down");
          } else {
            signal.throwIfAborted();
            await change(signal);
          }
        }
      },
    } satisfies Implementation<typeof Health, OpenCall>,
    /** Reports NOT_SERVING from now on, for the server and for each service. */
    announceDrain(): void {
      serving = false;
      wakeAll();
    },
    /** The same; watches end with UNAVAILABLE. */
    shutDown(): void {
      serving = false;
      down = true;
      wakeAll();
    },
  };

  /** Resolves at a change, and at an abort. */
  function change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      function done() {
        waiting.delete(done);
        signal.removeEventListener("abort", done);
        resolve();
      }
      waiting.add(done);
      signal.addEventListener("abort", done);
    });
  }

  function wakeAll(): void {
    for (const wake of waiting) inTurn(wake);
  }
}
