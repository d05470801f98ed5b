import type { IncomingHttpHeaders } from "node:http";
import type { Core } from "../core/core.ts";
import { GatewayError } from "../errors.ts";
import { Health } from "../gen/grpc/health/v1/health_pb.ts";
import { type Admission, createAdmission } from "../net/admission.ts";
import { Intake } from "../net/intake.ts";
import { createOnePort, type Tls } from "../net/one-port.ts";
import type { HttpResponse, RequestHead } from "../net/request-head.ts";
import { type Logger, noReport, type Report } from "../report.ts";
import { noTracing, type Tracing } from "../telemetry/tracing/tracing.ts";
import { createAdmissionGate } from "./admission-gate.ts";
import { toConnectError } from "./errors.ts";
import { createMethods, defaultLimits, type RpcLimits } from "./methods.ts";
import { type Protocol, streamProtocols, unaryProtocols } from "./protocols.ts";
import { createRequestListener } from "./request-listener.ts";
import type { Identify } from "./served-call.ts";
import { createHealth } from "./services/health.ts";
import { createReflection, reflectionServices } from "./services/reflection.ts";
import { implementation, services } from "./services/routes.ts";

export interface RpcServerOptions {
  readonly core: Core;
  readonly identify: Identify;
  readonly log: Logger;
  /** Which requests are refused by their headers alone. Default: none. */
  readonly misdirection?: Misdirection | undefined;
  /** Default: nothing is reported. */
  readonly report?: Report;
  /** Default: nothing is traced. */
  readonly tracing?: Tracing;
  /** Without it the port is cleartext. */
  readonly tls?: Tls;
  /** Single limits that differ from `defaultLimits`. */
  readonly limits?: Partial<RpcLimits>;
  /** Decides which calls are admitted. Default: all. */
  readonly admission?: Admission;
  /** Takes in the bodies of calls. Default: one that shares its memory with no other listener. */
  readonly intake?: Intake;
}

/** The RPC edge: Connect, gRPC and gRPC-Web on one port, over HTTP/1.1 and HTTP/2. */
export interface RpcServer {
  /** Resolves with the port once connections are accepted; port 0 takes a free one. */
  listen(host: string, port: number): Promise<{ port: number }>;
  /** Sets the status that `grpc.health.v1.Health` reports from now on. */
  setServing(serving: boolean): void;
  /** Uses these PEM texts for new connections from now on. */
  renewTls(tls: Tls): void;
  /**
   * Directs callers to other replicas: health reports NOT_SERVING, and HTTP/1.1 connections close
   * after their next response. All calls are still served.
   */
  announceDrain(): void;
  /**
   * Accepts no further connections and lets calls in flight finish. Resolves when all have, at the
   * latest after `timeoutMs`: calls that are left after nine tenths of it end with UNAVAILABLE, and
   * at its end all connections are cut. Live streams end when the core ends them.
   */
  drain(timeoutMs: number): Promise<void>;
  /** Cuts everything at once. */
  close(): void;
}

export function createRpcServer(options: RpcServerOptions): RpcServer {
  const { core, identify, log, report = noReport, tracing = noTracing } = options;
  const { admission = createAdmission({ maxCalls: undefined }) } = options;
  const { intake = new Intake({ admission }) } = options;
  const limits = { ...defaultLimits, ...options.limits };
  const all = [...services, Health, ...reflectionServices];
  const health = createHealth(all, limits.healthWatchMs);
  const reflection = createReflection(all, { admission, report, streamMs: limits.reflectionMs });
  const implemented = implementation(core);
  const methods = createMethods(
    services.map((service) => [service, implemented]),
    [[Health, health.service], ...reflection],
    limits,
    { core, identify, log, report, intake, requestTimeoutMs: limits.requestTimeoutMs },
  );

  const gate = createAdmissionGate(admission, report, limits.maxConnections);
  const listener = createRequestListener(methods, gate, tracing, log);
  const port = createOnePort({
    listener: refusesMisdirected(options.misdirection, listener),
    limits,
    intake,
    onCut: (limit) => report("cut", { listener: "rpc", limit }),
    onHandshakeFailed: (about) => report("handshakeFailed", about),
    ...(options.tls ? { tls: options.tls } : {}),
  });

  return {
    listen: port.listen,
    setServing: health.setServing,
    renewTls: port.renewTls,
    announceDrain() {
      health.setServing(false);
      port.endKeepAlive();
    },
    async drain(timeoutMs) {
      health.shutDown();
      // The last tenth of the time is for the error responses of the calls that are cut.
      const cut = setTimeout(methods.cut, timeoutMs * 0.9);
      const end = setTimeout(() => port.destroy(), timeoutMs);
      await port.drain();
      clearTimeout(cut);
      clearTimeout(end);
    },
    close() {
      health.shutDown();
      methods.cut();
      port.destroy();
    },
  };
}

/** Why a request is refused because of its headers; undefined if it is not. */
type Misdirection = (
  headers: IncomingHttpHeaders,
) => { readonly status: number; readonly message: string } | undefined;

type Listener = (head: RequestHead) => void;

/** Refuses misdirected requests before any other work, in the format of their protocol. */
function refusesMisdirected(misdirection: Misdirection | undefined, listener: Listener): Listener {
  if (!misdirection) return listener;
  return (head) => {
    const refused = misdirection(head.headers);
    if (!refused) return listener(head);
    const error = toConnectError(new GatewayError("PERMISSION_DENIED", refused.message));
    const type = head.headers["content-type"] ?? "";
    const { fail, extraBytes } =
      unaryProtocols.get(type) ??
      streamProtocols.get(type) ??
      (unaryProtocols.get("application/json") as Protocol);
    // Without a compression, the answer is there at once.
    const answer = fail(error, {}, null) as HttpResponse;
    // In an envelope, the error is part of a response that succeeds.
    head.answer(extraBytes === 0 ? { ...answer, status: refused.status } : answer);
  };
}
