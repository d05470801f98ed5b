import { EventEmitter, once } from "node:events";
import type { DescService } from "@bufbuild/protobuf";
import { GatewayError, shuttingDown } from "../../errors.ts";
import {
  type Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "../../gen/grpc/health/v1/health_pb.ts";
import type { AnonymousCall } from "../methods.ts";
import type { Implementation } from "./routes.ts";

/**
 * `grpc.health.v1.Health` for the given services and, as the empty name, for the server itself.
 */
export function createHealth(services: readonly DescService[]) {
  const names = ["", ...services.map((service) => service.typeName)];
  const known = new Set(names);
  /** Watches wait for its event `change`. */
  const changes = new EventEmitter().setMaxListeners(0);
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
            throw shuttingDown();
          } else {
            await once(changes, "change", { signal }).catch(() => signal.throwIfAborted());
          }
        }
      },
    } satisfies Implementation<typeof Health, AnonymousCall>,
    /** Reports NOT_SERVING from now on, for the server and for each service. */
    announceDrain(): void {
      serving = false;
      changes.emit("change");
    },
    /** The same; watches end with UNAVAILABLE. */
    shutDown(): void {
      serving = false;
      down = true;
      changes.emit("change");
    },
  };
}
