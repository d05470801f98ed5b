import type { Logger } from "pino";
import { createActivityWindow } from "../admin/activity-window.ts";
import { budgetSourceOf } from "../admin/budget-source.ts";
import { createConsole } from "../admin/create-console.ts";
import { deadLettersOf } from "../admin/dead-letters.ts";
import { createOperatorIdentity } from "../admin/identify-operator.ts";
import {
  observeBucket,
  observeCallbacks,
  observeReconciler,
  observeUpstream,
} from "../admin/observe.ts";
import { createSandboxActions } from "../admin/sandbox-actions.ts";
import { createAdminServer } from "../admin/server.ts";
import { createCallbackHandler } from "../callbacks/receiver.ts";
import type { Config } from "../config/config.ts";
import type { Account } from "../core/context.ts";
import { createCore } from "../core/create-core.ts";
import { warmUp } from "../core/validate.ts";
import { GatewayError } from "../errors.ts";
import { createCauses } from "../events/cause-of.ts";
import { observedLog } from "../events/observed-log.ts";
import { createGraphqlServer } from "../graphql/server.ts";
import { createAdmission } from "../net/admission.ts";
import { isLoopback } from "../net/loopback.ts";
import { observedBucket } from "../ratelimit/observed-bucket.ts";
import { createReconciler } from "../reconcile/reconciler.ts";
import { createRpcServer } from "../rpc/server.ts";
import { services } from "../rpc/services/routes.ts";
import type { SandboxClock } from "../sandbox/clock.ts";
import { createDemo } from "../sandbox/demo/demo.ts";
import type { SandboxOptions } from "../sandbox/options.ts";
import { graphqlObserver, rpcObserver } from "../telemetry/edge-observers.ts";
import { createGauges } from "../telemetry/gauges.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import {
  callbackObserver,
  coreObserver,
  limitObserver,
  reconcileObserver,
  upstreamObserver,
} from "../telemetry/observers.ts";
import { appendObserver, bucketObserver, lettersObserver } from "../telemetry/store-observers.ts";
import { traceObserver } from "../telemetry/trace-observer.ts";
import { createTracing } from "../telemetry/tracing/create-tracing.ts";
import { createUpstream } from "../upstream/create-upstream.ts";
import {
  authenticationOf,
  createWatchTokensOf,
  deriveKeyrings,
  graphqlServer,
  startEmulator,
  tlsFilesOf,
} from "./configured.ts";
import { createHostGuard, guardRequests } from "./host-guard.ts";
import { closed, listen, listening, url } from "./listening.ts";
import { createPublicServer } from "./public-server.ts";
import { openStores } from "./stores.ts";

/** A gateway that serves. The addresses are the real ones, also where a port was given as 0. */
export interface Gateway {
  readonly publicUrl: string;
  readonly rpcUrl: string;
  readonly adminUrl: string;
  /** Where the emulator listens, in sandbox mode. */
  readonly sandboxUrl?: string;
  /**
   * Drains: readiness and health turn, and after SHUTDOWN_DELAY listeners stop accepting, calls in
   * flight finish, streams end one by one with a cursor to resume from. Resolves within
   * SHUTDOWN_TIMEOUT; what is left then is cut.
   */
  stop(): Promise<void>;
}

/**
 * Joins the rooms and opens the listeners. The only file that knows all of them.
 * @param sandbox how the emulator differs from its defaults, in sandbox mode
 */
export async function startGateway(
  config: Config,
  log: Logger,
  sandbox: Partial<SandboxOptions> = {},
): Promise<Gateway> {
  // What a wrong file ends is not begun yet.
  const watchTokens = createWatchTokensOf(config);
  const authentication = authenticationOf(config, watchTokens, log);
  const { identify } = authentication;
  const tlsFiles = tlsFilesOf(config, log, (identity) => rpc.renewTls(identity));
  const metrics = createMetrics();
  const tracing = await createTracing(config.tracing, traceObserver(metrics, log));
  const keyrings = await deriveKeyrings([...config.accounts.values()]);
  // Tests move the sandbox's time on; what is kept in memory follows.
  let clock: SandboxClock | undefined;
  const now = () => clock?.now() ?? Date.now();
  const stores = await openStores(config, keyrings, metrics, log, now);
  const emulator = config.sandboxAddress && (await startEmulator(config, log, sandbox));
  clock = emulator?.clock;
  const accounts = [...config.accounts.values()].map((account) =>
    account.url === "" && emulator ? { ...account, url: emulator.url } : account,
  );
  const { intents } = stores;
  const eventLog = observedLog(stores.eventLog, tracing, appendObserver(metrics));
  const causes = createCauses(eventLog);

  const refused = new Set<string>();
  const activityWindows = new Map(accounts.map(({ name }) => [name, createActivityWindow()]));
  const running = new Map(
    accounts.map((account): [string, Account] => {
      const activity = activityWindows.get(account.name);
      const observed = observeBucket(activity, bucketObserver(account.name, metrics));
      const bucket = observedBucket(stores.bucketOf(account.name), observed);
      const observer = observeUpstream(
        activity,
        upstreamObserver(account, metrics, log, refused, causes),
      );
      const timeoutMs = config.upstreamTimeoutMs;
      return [
        account.name,
        { bucket, upstream: createUpstream({ account, bucket, timeoutMs, observer, tracing }) },
      ];
    }),
  );

  // Port 0 is known only once the listener is open; no call comes before.
  let publicUrl = config.publicUrl ?? "";
  const core = createCore({
    accounts: running,
    log: eventLog,
    intents,
    keyrings,
    timeouts: { maxWaitMs: config.rateLimit.maxWaitMs, timeoutMs: config.upstreamTimeoutMs },
    watchTokens,
    maxStreamsPerCaller: config.maxStreamsPerCaller,
    payoutEnds: config.payoutEnds,
    callbackUrl: (account, resource) =>
      `${publicUrl}/callbacks/${encodeURIComponent(account)}/${resource}`,
    observer: coreObserver(metrics, log),
    tracing,
  });
  warmUp(services.flatMap((service) => service.methods.map((method) => method.input)));

  const admission = createAdmission({ maxCalls: config.maxConcurrentCalls });
  const publicLimits = limitObserver("public", metrics, log);
  const { maxConnections, maxConnectionsPerAddress } = config;
  const counts = { maxConnections, maxConnectionsPerAddress };
  const graphql = graphqlServer({
    core,
    admission,
    limitObserver: publicLimits,
    identify,
    log,
    observer: graphqlObserver(metrics),
    tracing,
    production: config.production,
    corsOrigins: config.corsOrigins,
    introspection: config.graphqlIntrospection,
    heartbeatMs: config.heartbeatMs,
    ...(config.trustedDocuments ? { trustedDocuments: config.trustedDocuments } : {}),
  });
  const callbacks = createCallbackHandler({
    accounts: new Map(accounts.map((account) => [account.name, account])),
    payoutEnds: config.payoutEnds,
    log: eventLog,
    observer: observeCallbacks(activityWindows, callbackObserver(metrics, log)),
    maxUnverifiedBytes: config.maxUnverifiedBytes,
    tracing,
    causeOf: causes.of,
  });
  // Its pages call as anybody.
  const demo = emulator && config.auth.modes.has("none") ? createDemo() : undefined;
  const publicGuard = createHostGuard(config, config.publicAddress);
  const publicServer = guardRequests(
    createPublicServer(graphql.handle, callbacks, counts, publicLimits, demo),
    publicGuard,
    // Signed, and sent by whatever name the service reaches us by.
    (path) => path.startsWith("/callbacks/"),
  );
  const closeSockets = graphql.attachWebSocket(publicServer, publicGuard);
  const rpc = createRpcServer({
    core,
    identify: (headers) => identify({ header: (name) => headers.get(name) }),
    log,
    misdirection: createHostGuard(config, config.rpcAddress),
    admission,
    limits: { ...config.rpcConnections, ...counts },
    limitObserver: limitObserver("rpc", metrics, log),
    observer: rpcObserver(metrics),
    tracing,
    ...(tlsFiles ? { tls: tlsFiles.identity } : {}),
  });

  let draining = false;
  const notReady = () => [
    ...(draining ? ["shutting down"] : []),
    ...stores.notReady(),
    ...[...refused].map((name) => `the upstream refuses the credentials of account ${name}`),
  ];
  const lookUps = reconcileObserver(metrics, log);
  const operators = createOperatorIdentity(identify, [...running.keys()]);
  const [sandboxAccount] = accounts;
  const operatorConsole = createConsole({
    accounts: running,
    activityWindows,
    log: eventLog,
    intents,
    operators,
    authenticated: !config.auth.modes.has("none"),
    graphql: createGraphqlServer({ core, identify: operators.identify, log, production: true }),
    notReady,
    reserve: config.rateLimit.reserve,
    sourceOf: (account) => budgetSourceOf(metrics, account),
    reconciler: {
      giveUpMs: config.reconcileGiveUpMs,
      ...(config.reconcileAfterMs !== undefined && { afterMs: config.reconcileAfterMs }),
    },
    ...(emulator && sandboxAccount
      ? {
          sandbox: {
            url: emulator.url,
            sandboxActions: createSandboxActions({
              core,
              account: sandboxAccount,
              publicUrl: () => listeningUrl,
            }),
          },
        }
      : {}),
    onFailure: (error) => log.error({ err: error }, "admin request failed"),
  });
  const admin = createAdminServer({
    registry: metrics.registry,
    notReady,
    details() {
      const redis = stores.redisHealth?.();
      return redis && { redis };
    },
    console: operatorConsole,
    healthOnly: config.auth.modes.has("none") && !isLoopback(config.adminAddress.host),
    deadLetters: deadLettersOf(
      [...running.keys()],
      eventLog,
      lettersObserver(log),
      config.payoutEnds,
    ),
    limits: { counts, observer: limitObserver("admin", metrics, log) },
    refresh: createGauges(metrics, {
      buckets: new Map([...running].map(([account, { bucket }]) => [account, bucket])),
      log: eventLog,
      isReady: () => notReady().length === 0,
      tls: tlsFiles,
      refresh() {
        metrics.callsInFlight.set(admission.inFlight);
        stores.refresh();
        lookUps.forgetOldStats();
      },
    }),
  });

  const listeningUrl = await listen(publicServer, "PUBLIC_ADDR", config.publicAddress);
  publicUrl ||= listeningUrl;
  const rpcPort = await listening("RPC_ADDR", config.rpcAddress, ({ host, port }) =>
    rpc.listen(host, port),
  );
  const reconciler =
    config.reconcileAfterMs === undefined
      ? undefined
      : createReconciler({
          accounts: running,
          log: eventLog,
          intents,
          afterMs: config.reconcileAfterMs,
          giveUpMs: config.reconcileGiveUpMs,
          payoutEnds: config.payoutEnds,
          timeoutMs: config.upstreamTimeoutMs,
          ...(clock && { sleep: clock.sleep }),
          observer: observeReconciler(activityWindows, lookUps),
          tracing,
          causeOf: causes.of,
        });
  guardRequests(admin, createHostGuard(config, config.adminAddress));
  const adminUrl = await listen(admin, "ADMIN_ADDR", config.adminAddress);

  // Who keeps a connection alive learns with the next answer that it goes.
  publicServer.prependListener("request", (_, response) => {
    if (draining) response.shouldKeepAlive = false;
  });

  /** Load balancers and callers are told to go elsewhere; everything is served as before. */
  function announceDrain(): void {
    draining = true;
    rpc.announceDrain();
  }

  async function drain(timeoutMs: number): Promise<void> {
    const spreadMs = Math.min(config.shutdown.spreadMs, timeoutMs / 2);
    publicServer.close();
    publicServer.closeIdleConnections();
    const rpcDrained = rpc.drain(timeoutMs);
    const reconciled = reconciler?.close();
    const coreDrained = core.drain(shuttingDown(": resume from the last cursor"), spreadMs);
    // The last tenth is for the answers of calls that are cut.
    const cut = setTimeout(() => graphql.endCalls(shuttingDown()), timeoutMs * 0.9);
    const publicDrained = [closeSockets({ spreadMs, timeoutMs }), closed(publicServer)];
    await Promise.all([reconciled, rpcDrained, coreDrained, ...publicDrained]);
    clearTimeout(cut);
  }

  return {
    publicUrl: listeningUrl,
    rpcUrl: url(config.rpcAddress.host, rpcPort.port, config.tls !== undefined),
    adminUrl,
    ...(emulator ? { sandboxUrl: emulator.url } : {}),
    async stop() {
      const { timeoutMs, delayMs } = config.shutdown;
      const stoppedAt = performance.now();
      const timeUp = new Promise((resolve) => setTimeout(resolve, timeoutMs * 0.9).unref());
      announceDrain();
      if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
      await Promise.race([drain(timeoutMs * 0.8 - delayMs), timeUp]);
      publicServer.closeAllConnections();
      authentication.close();
      tlsFiles?.close();
      operatorConsole.close();
      rpc.close();
      admin.close();
      admin.closeAllConnections();
      const rooms = [...running.values()];
      // Buckets give back what they have not used, through connections that the stores close.
      const given = Promise.allSettled(rooms.map(({ bucket }) => bucket.close()));
      const closing = Promise.allSettled([
        ...rooms.map(({ upstream }) => upstream.close()),
        given.then(() => stores.close()),
        emulator?.close(),
      ]);
      await Promise.race([closing, timeUp]);
      // Last, with the spans of all that ended, in what is left of the time.
      const leftMs = timeoutMs * 0.95 - (performance.now() - stoppedAt);
      await tracing.shutdown(Math.min(Math.max(leftMs, 0), maxFlushMs));
    },
  };
}

function shuttingDown(advice = ""): GatewayError {
  return new GatewayError("UNAVAILABLE", `the gateway is shutting down${advice}`, {
    reason: "SHUTTING_DOWN",
    retryAfterMs: 1_000,
  });
}

/** A collector that is there takes no longer; one that is not is no reason to stay. */
const maxFlushMs = 3_000;
