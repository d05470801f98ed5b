import { UnderWay } from "../collections/under-way.ts";
import { GatewayError } from "../errors.ts";
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

  function cutCalls(): void {
    const shuttingDown = new GatewayError("UNAVAILABLE", "the gateway is shutting down");
    for (const controller of underWay) controller.abort(shuttingDown);
  }

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
     * Accepts no further connections and lets calls in flight finish. Resolves when all have, at the
     * latest after `timeoutMs`: calls that are left after nine tenths of it end with UNAVAILABLE, and
     * at its end all connections are cut. Live streams end when the core ends them.
     */
    async drain(timeoutMs: number): Promise<void> {
      health.shutDown();
      // The last tenth of the time is for the error responses of the calls that are cut.
      const cut = setTimeout(cutCalls, timeoutMs * 0.9);
      const end = setTimeout(port.destroy, timeoutMs);
      await port.drain();
      clearTimeout(cut);
      clearTimeout(end);
    },
    /** Cuts everything at once. */
    close(): void {
      health.shutDown();
      cutCalls();
      port.destroy();
    },
  };
}
