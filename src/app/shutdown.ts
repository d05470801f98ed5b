import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { Config } from "../config/config.ts";
import type { RunningCore } from "../core/create-core.ts";
import { shuttingDown } from "../errors.ts";
import type { GraphqlServer } from "../graphql/server.ts";
import type { Reconciler } from "../reconcile/reconciler.ts";
import type { RpcServer } from "../rpc/server.ts";
import type { RunningDurations } from "../telemetry/sdk-durations.ts";
import type { RunningTracing } from "../telemetry/tracing/tracing.ts";
import type { Account } from "../upstream/upstream.ts";
import { closed } from "./listening.ts";
import type { Stores } from "./stores.ts";

export interface ShutdownOptions {
  readonly times: Config["shutdown"];
  readonly publicServer: Server;
  readonly graphql: GraphqlServer;
  readonly closeSockets: ReturnType<GraphqlServer["attachWebSocket"]>;
  readonly rpc: RpcServer;
  readonly admin: Server;
  readonly core: RunningCore;
  readonly reconciler: Reconciler | undefined;
  readonly accounts: ReadonlyMap<string, Account>;
  readonly stores: Stores;
  readonly tracing: RunningTracing;
  readonly durations: RunningDurations | undefined;
  /** Watchers of key and TLS files, closed when the remaining connections are cut. */
  readonly watchedFiles: readonly ({ close(): void } | undefined)[];
  readonly emulator: { close(): Promise<void> } | undefined;
}

/** Ends a gateway: announce, drain, cut what is left, close the stores, flush the telemetry. */
export function createShutdown(options: ShutdownOptions) {
  const { times, publicServer, graphql, rpc, admin, core, stores, tracing } = options;
  const unused = new Set<Socket>();
  let announced = false;

  // Once shutdown is announced, the next response on a connection that is kept alive closes it.
  publicServer.prependListener("request", ({ socket }, response) => {
    unused.delete(socket);
    if (announced) response.shouldKeepAlive = false;
  });
  publicServer.prependListener("upgrade", ({ socket }) => unused.delete(socket));
  // Browsers open connections in advance. Node counts one as idle only after its first request.
  publicServer.on("connection", (socket: Socket) => {
    unused.add(socket);
    socket.on("close", () => unused.delete(socket));
  });

  /** Readiness and health report not ready, so that traffic goes elsewhere; all is still served. */
  function announce(): void {
    announced = true;
    rpc.announceDrain();
  }

  async function drain(timeoutMs: number): Promise<void> {
    const spreadMs = Math.min(times.spreadMs, timeoutMs / 2);
    publicServer.close();
    publicServer.closeIdleConnections();
    for (const socket of unused) if (socket.bytesRead === 0) socket.destroy();
    // Of a request that has begun to arrive the rest may never come.
    const cutUnused = setTimeout(() => {
      for (const socket of unused) socket.destroy();
    }, arrivalMs);
    const rpcDrained = rpc.drain();
    const reconciled = options.reconciler?.close();
    const coreDrained = core.drain(shuttingDown(": resume from the last cursor"), spreadMs);
    // Calls are cut when a tenth of the time is left, in which their responses are sent.
    const cut = setTimeout(() => {
      for (const edge of [graphql, rpc]) edge.endCalls(shuttingDown());
    }, timeoutMs * 0.9);
    const publicDrained = [options.closeSockets({ spreadMs, timeoutMs }), closed(publicServer)];
    await Promise.all([reconciled, rpcDrained, coreDrained, ...publicDrained]);
    clearTimeout(cut);
    clearTimeout(cutUnused);
  }

  function cutConnections(): void {
    publicServer.closeAllConnections();
    for (const files of options.watchedFiles) files?.close();
    rpc.close();
    admin.close();
    admin.closeAllConnections();
  }

  async function closeStores(): Promise<void> {
    const accounts = [...options.accounts.values()];
    for (const { bucket } of accounts) bucket.close();
    await Promise.allSettled([
      ...accounts.map(({ upstream }) => upstream.close()),
      stores.close(),
      options.emulator?.close(),
    ]);
  }

  return {
    /** Whether the shutdown has begun: readiness reports it, so that traffic goes elsewhere. */
    get announced(): boolean {
      return announced;
    },
    /**
     * Drains: readiness and health report not ready, and after SHUTDOWN_DELAY listeners stop
     * accepting, calls in flight finish, streams end one by one with a cursor to resume from.
     * Resolves within SHUTDOWN_TIMEOUT; what is still open by then is cut.
     */
    async stop(): Promise<void> {
      const { timeoutMs, delayMs } = times;
      const stoppedAt = performance.now();
      const timeUp = new Promise((resolve) => setTimeout(resolve, timeoutMs * 0.9).unref());
      announce();
      if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
      await Promise.race([drain(timeoutMs * 0.8 - delayMs), timeUp]);
      cutConnections();
      await Promise.race([closeStores(), timeUp]);
      // Telemetry comes last, to export what the steps above recorded, in the time that is left.
      const leftMs = timeoutMs * 0.95 - (performance.now() - stoppedAt);
      const flushMs = Math.min(Math.max(leftMs, 0), maxFlushMs);
      await Promise.all([tracing.shutdown(flushMs), options.durations?.shutdown(flushMs)]);
    },
  };
}

/** How long the headers of a connection's first request may take once no more are accepted. */
const arrivalMs = 1_000;

/** A reachable collector takes no longer; an unreachable one must not delay the exit. */
const maxFlushMs = 3_000;
