import { EventEmitter, once } from "node:events";
import type { DescService } from "@bufbuild/protobuf";
import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import {
  type Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "../../gen/grpc/health/v1/health_pb.ts";

export interface HealthStatus {
  readonly service: ServiceImpl<typeof Health>;
  /** Sets the status that all methods report from now on, for the server and for each service. */
  setServing(serving: boolean): void;
  /** Reports NOT_SERVING for good: watches receive it and then end with UNAVAILABLE. */
  shutDown(): void;
}

/** `grpc.health.v1.Health` for the given services and, as the empty name, for the server itself. */
export function createHealth(services: readonly DescService[]): HealthStatus {
  const names = ["", ...services.map((service) => service.typeName)];
  const known = new Set(names);
  const changes = new EventEmitter().setMaxListeners(0);
  let serving = true;
  let down = false;

  const current = () => (serving && !down ? ServingStatus.SERVING : ServingStatus.NOT_SERVING);

  return {
    service: {
      check({ service }) {
        if (!known.has(service)) throw new ConnectError("unknown service", Code.NotFound);
        return { status: current() };
      },
      list: () => ({
        statuses: Object.fromEntries(names.map((name) => [name, { status: current() }])),
      }),
      async *watch({ service }, { signal }) {
        let sent: ServingStatus | undefined;
        while (true) {
          const status = known.has(service) ? current() : ServingStatus.SERVICE_UNKNOWN;
          if (status !== sent) {
            sent = status;
            yield { status };
          } else if (down) {
            throw new ConnectError("the gateway is shutting down", Code.Unavailable);
          } else {
            await once(changes, "change", { signal });
          }
        }
      },
    },
    setServing(value) {
      serving = value;
      changes.emit("change");
    },
    shutDown() {
      down = true;
      changes.emit("change");
    },
  };
}
