import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Logger } from "pino";
import type { DeadLetters } from "./admin/dead-letters.ts";
import { createMetrics, type Metrics } from "./admin/metrics.ts";
import { createRecent } from "./admin/recent.ts";
import { createAdminServer } from "./admin/server.ts";
import { AuthFileError, createAuthentication } from "./auth/create-authentication.ts";
import { createWatchTokens, type WatchTokens } from "./auth/watch-token.ts";
import { createCallbackHandler } from "./callbacks/receiver.ts";
import { replay } from "./callbacks/replay.ts";
import { type Address, type Config, ConfigError } from "./config.ts";
import type { Account } from "./core/context.ts";
import { createCore } from "./core/create-core.ts";
import { warmUp } from "./core/validate.ts";
import { createDemo, demoPath } from "./demo/demo.ts";
import { graphqlObserver, rpcObserver } from "./edge-observers.ts";
import { GatewayError } from "./errors.ts";
import { createCauses } from "./events/cause-of.ts";
import type { EventLog } from "./events/log.ts";
import { observedLog } from "./events/observed-log.ts";
import { createGauges } from "./gauges.ts";
import { EventKind } from "./gen/payments/v1/event_pb.ts";
import {
  createGraphqlServer,
  type GraphqlServer,
  type GraphqlServerOptions,
} from "./graphql/server.ts";
import { WrongDocumentError } from "./graphql/trusted-documents.ts";
import { createHostGuard, guardRequests } from "./host-guard.ts";
import { createAdmission } from "./limits/admission.ts";
import type { ConnectionCounts } from "./limits/connections.ts";
import { limitHttp1 } from "./limits/http1.ts";
import type { LimitObserver } from "./limits/observer.ts";
import { defaultUnreadLimits } from "./limits/unread-answers.ts";
import {
  authObserver,
  callbackObserver,
  coreObserver,
  limitObserver,
  reconcileObserver,
  tlsObserver,
  upstreamObserver,
} from "./observers.ts";
import { createConsole } from "./operator/create-console.ts";
import { createOperatorIdentity } from "./operator/identify-operator.ts";
import { callbacksTell, reconcilerTells, upstreamTells } from "./operator/observe.ts";
import { createTrials } from "./operator/trials.ts";
import { observedBucket } from "./ratelimit/observed-bucket.ts";
import { createReconciler } from "./reconcile/reconciler.ts";
import { services } from "./rpc/routes.ts";
import { createRpcServer } from "./rpc/server.ts";
import type { SandboxOptions } from "./sandbox/options.ts";
import { startSandbox } from "./sandbox/server.ts";
import { deriveKeyring, type Keyring } from "./seal/keyring.ts";
import { Secret } from "./secret.ts";
import { appendObserver, bucketObserver } from "./store-observers.ts";
import { openStores } from "./stores.ts";
import { openTlsFiles, TlsFileError, type TlsFiles, type TlsIdentity } from "./tls-files.ts";
import { traceObserver } from "./trace-observer.ts";
import { createTracing } from "./tracing/create-tracing.ts";
import { createUpstream } from "./upstream/create-upstream.ts";
import type { MerchantAccount } from "./upstream/upstream.ts";

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
  const emulator = config.sandboxAddress && (await startEmulator(config, log, sandbox));
  const accounts = [...config.accounts.values()].map((account) =>
    account.url === "" && emulator ? { ...account, url: emulator.url } : account,
  );
  const keyrings = await deriveKeyrings(accounts);
  const stores = openStores(config, keyrings, metrics, log);
  const { intents } = stores;
  const eventLog = observedLog(stores.eventLog, tracing, appendObserver(metrics));
  const causes = createCauses(eventLog);

  const refused = new Set<string>();
  const recents = new Map(accounts.map(({ name }) => [name, createRecent()]));
  const running = new Map(
    accounts.map((account): [string, Account] => {
      const observed = bucketObserver(account.name, metrics);
      const bucket = observedBucket(stores.bucketOf(account.name), observed);
      const observer = upstreamTells(
        recents.get(account.name),
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
    patience: { maxWaitMs: config.rateLimit.maxWaitMs, timeoutMs: config.upstreamTimeoutMs },
    watchTokens,
    maxStreamsPerCaller: config.maxStreamsPerCaller,
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
    log: eventLog,
    observer: callbacksTell(recents, callbackObserver(metrics, log)),
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
    ...[...refused].map((name) => `the upstream refuses the credentials of account ${name}`),
  ];
  const lookUps = reconcileObserver(metrics, log);
  const operators = createOperatorIdentity(identify, [...running.keys()]);
  const [sandboxAccount] = accounts;
  const operatorConsole = createConsole({
    accounts: running,
    recents,
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
            trials: createTrials({ core, account: sandboxAccount, publicUrl: () => listeningUrl }),
          },
        }
      : {}),
    onFailure: (error) => log.error({ err: error }, "an answer of the admin listener failed"),
  });
  const admin = createAdminServer({
    registry: metrics.registry,
    notReady,
    console: operatorConsole,
    deadLetters: deadLettersOf([...running.keys()], eventLog),
    limits: { counts, observer: limitObserver("admin", metrics, log) },
    refresh: createGauges(metrics, {
      buckets: new Map([...running].map(([account, { bucket }]) => [account, bucket])),
      log: eventLog,
      isReady: () => notReady().length === 0,
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
          timeoutMs: config.upstreamTimeoutMs,
          observer: reconcilerTells(recents, lookUps),
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
    const coreDrained = core.drain(
      new GatewayError("UNAVAILABLE", "the gateway is shutting down: resume from the last cursor", {
        reason: "SHUTTING_DOWN",
        retryAfterMs: 1_000,
      }),
      spreadMs,
    );
    const publicDrained = [closeSockets({ spreadMs, timeoutMs }), closed(publicServer)];
    await Promise.all([reconciled, rpcDrained, coreDrained, ...publicDrained]);
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
      await tracing.shutdown(Math.min(Math.max(leftMs, 0), longestFlushMs));
    },
  };
}

/** A collector that is there takes no longer; one that is not is no reason to stay. */
const longestFlushMs = 3_000;

function graphqlServer(options: GraphqlServerOptions): GraphqlServer {
  try {
    return createGraphqlServer(options);
  } catch (error) {
    if (!(error instanceof WrongDocumentError)) throw error;
    throw new ConfigError("PERSISTED_DOCUMENTS_FILE", error.message);
  }
}

async function startEmulator(config: Config, log: Logger, sandbox: Partial<SandboxOptions>) {
  const account = config.accounts.get("default");
  if (!account) throw new ConfigError("MERCHANTS_FILE", "the sandbox has the account default only");
  const { host, port } = config.sandboxAddress ?? { host: "127.0.0.1", port: 0 };
  const { login, password } = account;
  return listening("SANDBOX_ADDR", { host, port }, () =>
    startSandbox({
      host,
      port,
      login,
      password,
      log: (record) => log.debug({ sandbox: record }, "sandbox"),
      ...sandbox,
    }),
  );
}

async function deriveKeyrings(
  accounts: readonly MerchantAccount[],
): Promise<ReadonlyMap<string, Keyring>> {
  const derived = accounts.map(async ({ name, password, previousPasswords }) => {
    const keyring = await deriveKeyring(name, [password, ...previousPasswords]);
    return [name, keyring] as const;
  });
  return new Map(await Promise.all(derived));
}

/** In sandbox mode a secret of this process will do; a real deployment shares one over its replicas. */
function createWatchTokensOf(config: Config) {
  const { watchTokenSecret, watchTokenPreviousSecrets, sandboxAddress } = config;
  if (watchTokenSecret) return createWatchTokens(watchTokenSecret, watchTokenPreviousSecrets);
  if (!sandboxAddress) return undefined;
  return createWatchTokens(new Secret(randomBytes(32).toString("base64url")));
}

/** A file of keys that is wrong is a wrong configuration; one that goes wrong later is only told of. */
function authenticationOf(
  { auth, accounts }: Config,
  watchTokens: WatchTokens | undefined,
  log: Logger,
) {
  try {
    return createAuthentication({
      ...auth,
      accounts: new Set(accounts.keys()),
      watchTokens,
      observer: authObserver(log),
    });
  } catch (error) {
    if (error instanceof AuthFileError) throw new ConfigError(error.variable, error.message);
    throw error;
  }
}

/** The same is so of the files of TLS. */
function tlsFilesOf(
  { tls }: Config,
  log: Logger,
  renew: (identity: TlsIdentity) => void,
): TlsFiles | undefined {
  try {
    return tls && openTlsFiles({ paths: tls, ...tlsObserver(log, renew) });
  } catch (error) {
    if (error instanceof TlsFileError) throw new ConfigError(error.variable, error.message);
    throw error;
  }
}

/** Where the account's tokens come from; without Redis nobody says. */
async function budgetSourceOf({ bucketShared }: Metrics, account: string) {
  const { values } = await bucketShared.get();
  const shared = values.find(({ labels }) => labels.account === account);
  if (!shared) return "own";
  return shared.value === 1 ? "shared" : "share";
}

function deadLettersOf(accounts: readonly string[], log: EventLog): DeadLetters {
  return {
    async list() {
      const lists = accounts.map(async (account) =>
        (await log.deadLetters(account)).map(({ id, kind, reason, body, receivedAtMs }) => ({
          account,
          id,
          resource: kind === EventKind.PAYOUT ? ("payouts" as const) : ("payments" as const),
          reason,
          receivedAt: new Date(receivedAtMs).toISOString(),
          ...(body === undefined ? { locked: true as const } : { body }),
        })),
      );
      const all = (await Promise.all(lists)).flat();
      return all.toSorted((a, b) => b.receivedAt.localeCompare(a.receivedAt));
    },
    async replay(account, id) {
      return accounts.includes(account) ? replay(log, account, id) : "not_found";
    },
  };
}

function createPublicServer(
  graphql: (...args: Handled) => void,
  callbacks: (...args: Handled) => Promise<void>,
  counts: ConnectionCounts,
  observer: LimitObserver,
  demo?: (...args: Handled) => void,
): Server {
  const server = createServer(
    {
      headersTimeout: 10_000,
      requestTimeout: 30_000,
      keepAliveTimeout: 65_000,
      connectionsCheckingInterval: 5_000,
      // Other upgrades, h2c among them, are offers: the request is served as it is.
      shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === "websocket",
    },
    (request, response) => {
      if (!guard.passes(request, response)) return;
      const path = (request.url ?? "/").split("?", 1)[0] ?? "/";
      if (path === "/graphql") return graphql(request, response);
      if (path.startsWith("/callbacks/")) return void callbacks(request, response);
      if (demo && (path === demoPath || path.startsWith(`${demoPath}/`))) {
        return demo(request, response);
      }
      request.resume();
      response.statusCode = 404;
      response.setHeader("content-type", "application/json");
      response.end('{"error":"not found"}\n');
    },
  );
  const guard = limitHttp1(server, { ...defaultUnreadLimits, ...counts }, observer);
  return server;
}

type Handled = Parameters<ReturnType<typeof createCallbackHandler>>;

async function listen(server: Server, variable: string, address: Address): Promise<string> {
  return listening(variable, address, async ({ host, port }) => {
    server.listen(port, host);
    await once(server, "listening");
    return url(host, (server.address() as AddressInfo).port);
  });
}

/** An address that cannot be listened on is a wrong configuration. */
async function listening<T>(
  variable: string,
  address: Address,
  open: (address: Address) => Promise<T>,
): Promise<T> {
  try {
    return await open(address);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EADDRINUSE" && code !== "EACCES" && code !== "EADDRNOTAVAIL") throw error;
    throw new ConfigError(variable, `cannot listen on ${address.host}:${address.port} (${code})`);
  }
}

/** A wildcard address is reachable on loopback. */
function url(host: string, port: number, tls = false): string {
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  const name = reachable.includes(":") ? `[${reachable}]` : reachable;
  return `${tls ? "https" : "http"}://${name}:${port}`;
}

/** A connection kept alive counts as idle only when its last answer is through. */
async function closed(server: Server): Promise<void> {
  const sweep = setInterval(() => server.closeIdleConnections(), 25);
  await new Promise<void>((resolve) => {
    server.once("close", resolve);
    // It may have closed before this.
    server.getConnections((_, count) => count === 0 && !server.listening && resolve());
  });
  clearInterval(sweep);
}
