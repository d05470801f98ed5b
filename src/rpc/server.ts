import { UnderWay } from "../collections/under-way.ts";
import type { GatewayError } from "../errors.ts";
import { Health } from "../gen/grpc/health/v1/health_pb.ts";
import { createOnePort, type Tls } from "../net/one-port.ts";
import { defaultLimits, methodsOf, type RpcLimits, type ServingOptions } from "./methods.ts";
import { createRequestListener } from "./request-listener.ts";
import { createHealth } from "./services/health.ts";
import { createReflection, reflectionServices } from "./services/reflection.ts";
import { implementation, services } from "./services/routes.ts";

export interface RpcServerOptions extends Omit<ServingOptions, "limits" | "underWay"> {
  /** Without it the port is cleartext. */
  readonly tls?: Tls;
  /** Single limits that differ from `defaultLimits`. */
  readonly limits?: Partial<RpcLimits>;
}

export type RpcServer = ReturnType<typeof createRpcServer>;

/** The RPC edge: Connect, gRPC and gRPC-Web on one port, over HTTP/1.1 and HTTP/2. */
export function createRpcServer(options: RpcServerOptions) {
  const { core, admission, intake, report } = options;
  const limits = { ...defaultLimits, ...options.limits };
  const all = [...services, Health, ...reflectionServices];
  const health = createHealth(all);
  const reflection = createReflection(all, { admission, report });
  const implemented = implementation(core);
  const methods = [
    ...services.flatMap((service) => methodsOf(service, implemented, false, limits)),
    ...methodsOf(Health, health.service, true, limits),
    ...reflectionServices.flatMap((service) => methodsOf(service, reflection, true, limits)),
  ];
  const underWay = new UnderWay<AbortController>();
  const port = createOnePort({
    listener: createRequestListener({ ...options, limits, underWay }, methods),
    limits,
    intake,
    onCut: (limit) => report("cut", { listener: "rpc", limit }),
    onHandshakeFailed: (about) => report("handshakeFailed", about),
    ...(options.tls ? { tls: options.tls } : {}),
  });

  return {
    acceptor: port.acceptor,
    renewTls: port.renewTls,
    /**
     * Directs callers to other replicas: health reports NOT_SERVING, and HTTP/1.1 connections close
     * after their next response. All calls are still served.
     */
    announceDrain(): void {
      health.announceDrain();
      port.endKeepAlive();
    },
    /**
     * Accepts no further connections. Resolves when all calls in flight have finished. Live streams
     * end when the core ends them.
     */
    drain(): Promise<void> {
      health.shutDown();
      return port.drain();
    },
    /** Ends the calls and streams that are left: their callers receive `reason`. */
    endCalls(reason: GatewayError): void {
      for (const controller of underWay) controller.abort(reason);
    },
    /** Cuts all connections. */
    close(): void {
      health.shutDown();
      port.destroy();
    },
  };
}
