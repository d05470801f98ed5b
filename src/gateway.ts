import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Logger } from "pino";
import type { DeadLetters } from "./admin/dead-letters.ts";
import { createMetrics } from "./admin/metrics.ts";
import { createAdminServer } from "./admin/server.ts";
import { AuthFileError, createAuthentication } from "./auth/create-authentication.ts";
import { createWatchTokens, type WatchTokens } from "./auth/watch-token.ts";
import { createCallbackHandler } from "./callbacks/receiver.ts";
import { replay } from "./callbacks/replay.ts";
import { type Address, type Config, ConfigError } from "./config.ts";
import type { Account } from "./core/context.ts";
import { createCore } from "./core/create-core.ts";
import { warmUp } from "./core/validate.ts";
import { GatewayError } from "./errors.ts";
import type { EventLog } from "./events/log.ts";
import { EventKind } from "./gen/payments/v1/event_pb.ts";
import {
  createGraphqlServer,
  type GraphqlServer,
  type GraphqlServerOptions,
} from "./graphql/server.ts";
import { WrongDocumentError } from "./graphql/trusted-documents.ts";
import { createSeal } from "./intents/seal.ts";
import {
  authObserver,
  callbackObserver,
  coreObserver,
  reconcileObserver,
  upstreamObserver,
} from "./observers.ts";
import { createReconciler } from "./reconcile/reconciler.ts";
import { services } from "./rpc/routes.ts";
import { createRpcServer } from "./rpc/server.ts";
import type { SandboxOptions } from "./sandbox/options.ts";
import { startSandbox } from "./sandbox/server.ts";
import { Secret } from "./secret.ts";
import { openStores } from "./stores.ts";
import { createUpstream } from "./upstream/create-upstream.ts";

/** A gateway that serves. The addresses are the real ones, also where a port was given as 0. */
export interface Gateway {
  readonly publicUrl: string;
  readonly rpcUrl: string;
  readonly adminUrl: string;
  /** Where the emulator listens, in sandbox mode. */
  readonly sandboxUrl?: string;
  /**
   * Drains: readiness turns 503, listeners stop accepting, calls in flight finish, streams end with
   * a cursor to resume from. Resolves within SHUTDOWN_TIMEOUT; what is left then is cut.
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
  const metrics = createMetrics();
  const emulator = config.sandboxAddress && (await startEmulator(config, log, sandbox));
  const accounts = [...config.accounts.values()].map((account) =>
    account.url === "" && emulator ? { ...account, url: emulator.url } : account,
  );
  const stores = openStores(config, metrics, log);
  const { eventLog, intents } = stores;

  const refused = new Set<string>();
  const running = new Map(
    accounts.map((account): [string, Account] => {
      const bucket = stores.bucketOf(account.name);
      const observer = upstreamObserver(account, metrics, log, refused);
      const timeoutMs = config.upstreamTimeoutMs;
      return [
        account.name,
        { bucket, upstream: createUpstream({ account, bucket, timeoutMs, observer }) },
      ];
    }),
  );

  // Port 0 is known only once the listener is open; no call comes before.
  let publicUrl = config.publicUrl ?? "";
  const core = createCore({
    accounts: running,
    log: eventLog,
    intents,
    seals: new Map(
      accounts.map(({ name, password, previousPasswords }) => [
        name,
        createSeal([password, ...previousPasswords]),
      ]),
    ),
    patience: { maxWaitMs: config.rateLimit.maxWaitMs, timeoutMs: config.upstreamTimeoutMs },
    watchTokens,
    maxStreamsPerCaller: config.maxStreamsPerCaller,
    callbackUrl: (account, resource) =>
      `${publicUrl}/callbacks/${encodeURIComponent(account)}/${resource}`,
    observer: coreObserver(metrics, log),
  });
  warmUp(services.flatMap((service) => service.methods.map((method) => method.input)));

  const graphql = graphqlServer({
    core,
    identify,
    log,
    production: config.production,
    corsOrigins: config.corsOrigins,
    introspection: config.graphqlIntrospection,
    heartbeatMs: config.heartbeatMs,
    ...(config.trustedDocuments ? { trustedDocuments: config.trustedDocuments } : {}),
  });
  const callbacks = createCallbackHandler({
    accounts: new Map(accounts.map((account) => [account.name, account])),
    log: eventLog,
    observer: callbackObserver(metrics, log),
  });
  const publicServer = createPublicServer(graphql.handle, callbacks);
  const closeSockets = graphql.attachWebSocket(publicServer);
  const rpc = createRpcServer({
    core,
    identify: (headers) => identify({ header: (name) => headers.get(name) }),
    log,
    ...(config.tls ? { tls: config.tls } : {}),
  });

  let draining = false;
  const admin = createAdminServer({
    registry: metrics.registry,
    notReady: () => [
      ...(draining ? ["shutting down"] : []),
      ...[...refused].map((name) => `the upstream refuses the credentials of account ${name}`),
    ],
    deadLetters: deadLettersOf([...running.keys()], eventLog),
    refresh() {
      for (const [account, { bucket }] of running) {
        const { limit, remaining } = bucket.status();
        metrics.bucketLimit.set({ account }, limit);
        metrics.bucketTokens.set({ account }, remaining);
      }
    },
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
          observer: reconcileObserver(metrics, log),
        });
  const adminUrl = await listen(admin, "ADMIN_ADDR", config.adminAddress);

  async function drain(timeoutMs: number): Promise<void> {
    draining = true;
    publicServer.close();
    publicServer.closeIdleConnections();
    const rpcDrained = rpc.drain(timeoutMs);
    const reconciled = reconciler?.close();
    await core.drain(
      new GatewayError("UNAVAILABLE", "the gateway is shutting down: resume from the last cursor", {
        reason: "SHUTTING_DOWN",
        retryAfterMs: 1_000,
      }),
    );
    await Promise.all([reconciled, rpcDrained, closeSockets(), closed(publicServer)]);
  }

  return {
    publicUrl: listeningUrl,
    rpcUrl: url(config.rpcAddress.host, rpcPort.port, config.tls !== undefined),
    adminUrl,
    ...(emulator ? { sandboxUrl: emulator.url } : {}),
    async stop() {
      const { shutdownTimeoutMs } = config;
      const timeUp = new Promise((resolve) => setTimeout(resolve, shutdownTimeoutMs * 0.9).unref());
      await Promise.race([drain(shutdownTimeoutMs * 0.8), timeUp]);
      publicServer.closeAllConnections();
      authentication.close();
      rpc.close();
      admin.close();
      admin.closeAllConnections();
      const rooms = [...running.values()].flatMap(({ upstream, bucket }) => [
        upstream.close(),
        bucket.close(),
      ]);
      const closing = Promise.allSettled([...rooms, stores.close(), emulator?.close()]);
      await Promise.race([closing, timeUp]);
    },
  };
}

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

/** In sandbox mode a secret of this process will do; a real deployment shares one over its replicas. */
function createWatchTokensOf({ watchTokenSecret, sandboxAddress }: Config) {
  if (watchTokenSecret) return createWatchTokens(watchTokenSecret);
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

function deadLettersOf(accounts: readonly string[], log: EventLog): DeadLetters {
  return {
    async list() {
      const lists = accounts.map(async (account) =>
        (await log.deadLetters(account)).map(({ id, kind, reason, body, receivedAtMs }) => ({
          account,
          id,
          resource: kind === EventKind.PAYOUT ? ("payouts" as const) : ("payments" as const),
          reason,
          body,
          receivedAt: new Date(receivedAtMs).toISOString(),
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
): Server {
  return createServer(
    { headersTimeout: 10_000, requestTimeout: 30_000, keepAliveTimeout: 65_000 },
    (request, response) => {
      const path = (request.url ?? "/").split("?", 1)[0] ?? "/";
      if (path === "/graphql") return graphql(request, response);
      if (path.startsWith("/callbacks/")) return void callbacks(request, response);
      request.resume();
      response.statusCode = 404;
      response.setHeader("content-type", "application/json");
      response.end('{"error":"not found"}\n');
    },
  );
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
