import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { createActivities } from "../admin/activity.ts";
import { createAuthentication } from "../auth/create-authentication.ts";
import type { Identify } from "../auth/identify.ts";
import { createWatchTokens, type WatchTokens } from "../auth/watch-token.ts";
import { createCallbackHandler } from "../callbacks/receiver.ts";
import type { Config } from "../config/config.ts";
import type { Core } from "../core/core.ts";
import { createCore } from "../core/create-core.ts";
import { ofAccount } from "../errors.ts";
import { schema } from "../graphql/schema/schema.ts";
import { createSubgraphSchema } from "../graphql/schema/subgraph.ts";
import { createGraphqlServer } from "../graphql/server.ts";
import { createAdmission } from "../net/admission.ts";
import { Intake } from "../net/intake.ts";
import { createMemoryBudget, type MemoryBudget } from "../net/memory-budget.ts";
import { openTlsFiles, type TlsFiles } from "../net/tls-files.ts";
import { createReconciler } from "../reconcile/reconciler.ts";
import type { Logger, Report } from "../report.ts";
import { createRpcServer } from "../rpc/server.ts";
import { deriveKeyrings } from "../secrets/keyring.ts";
import { Secret } from "../secrets/secret.ts";
import { createTelemetry, createTracing, type Telemetry } from "../telemetry/telemetry.ts";
import type { RunningTracing } from "../telemetry/tracing/tracing.ts";
import { createUpstream } from "../upstream/create-upstream.ts";
import type { Account } from "../upstream/upstream.ts";
import { createAdminListener } from "./admin-listener.ts";
import { type Emulator, startEmulator } from "./emulator.ts";
import { createHostGuard, noteRefusedOrigins } from "./host-guard.ts";
import { listen } from "./listening.ts";
import { openStores } from "./open-stores.ts";
import { createPublicServer } from "./public-server.ts";
import { createShutdown } from "./shutdown.ts";

/** A running gateway. Its URLs have the actual ports, also where port 0 was configured. */
export type Gateway = Awaited<ReturnType<typeof startGateway>>;

/**
 * Creates and connects all parts of the gateway, which only this file imports, and opens the
 * listeners. What a failed start has opened stays open until its process ends.
 * @param sandbox settings of the emulator's own, in sandbox mode
 * @throws ConfigError for a configured file, directory or address that cannot be used
 */
export async function startGateway(config: Config, log: Logger, sandbox: object = {}) {
  const names = [...config.accounts.keys()];
  const { report: note, ...told } = await createTelemetry(log, names, config.metrics);
  const activities = createActivities(
    names,
    (name) => ofAccount(accounts, name).bucket.status().remaining,
  );
  const report: Report = (...observed) => {
    activities.report(...observed);
    note(...observed);
  };
  const telemetry = { ...told, report };

  // Authentication and TLS come first: a wrong file ends the start before stores or listeners open.
  const watchTokens = watchTokensOf(config);
  const authentication = createAuthentication(config.auth, new Set(names), watchTokens, report);
  const { verify, identify } = authentication;
  const tlsFiles =
    config.tls &&
    openTlsFiles(config.tls, { onChange: (identity) => edges.rpc.renewTls(identity), report });
  const tracing = await createTracing(config.tracing, report);
  const budget = createMemoryBudget(config.maxBufferedBytes);
  const common = { config, log, telemetry, tracing, budget };
  const back = await openBack(common, sandbox);
  const { stores, ledger, emulator, accounts } = back;

  // Without PUBLIC_URL, `publicUrl` is set once the port is known, before any call.
  let publicUrl = config.publicUrl ?? "";
  const timeoutMs = config.upstreamTimeoutMs;
  const core = createCore({
    ...{ accounts, ledger, keyrings: back.keyrings },
    timeouts: { maxWaitMs: config.rateLimit.maxWaitMs, timeoutMs },
    watchTokens,
    maxStreamsPerCaller: config.maxStreamsPerCaller,
    namesExternalIds: config.logExternalIds,
    callbackUrl: (account, resource) =>
      `${publicUrl}/callbacks/${encodeURIComponent(account)}/${resource}`,
    ...{ report, tracing },
  });

  const edges = createEdges(common, back, core, identify, tlsFiles);
  const { admission, intake, publicServer, rpc } = edges;

  const notReady = () => [
    ...(shutdown.announced ? ["shutting down"] : []),
    ...stores.notReady(),
    // While only some are refused, the calls of the others go on here as well as elsewhere.
    ...(activities.refused().length === names.length
      ? names.map((name) => `the upstream refuses the credentials of account ${name}`)
      : []),
  ];
  const admin = createAdminListener(config, log, {
    ...{ accounts, activities, core, verify, stores },
    ...{ admission, intake, tlsFiles, telemetry, emulator },
    ...{ notReady, publicUrl: () => listeningUrl },
  });

  // Open the listeners, the operators' last.
  const listeningUrl = await listen(publicServer, "PUBLIC_ADDR", config.publicAddress);
  publicUrl ||= listeningUrl;
  const rpcUrl = await listen(rpc.acceptor, "RPC_ADDR", config.rpcAddress);
  const { reconcileAfterMs: afterMs, reconcileGiveUpMs: giveUpMs } = config;
  const reconciler =
    afterMs === undefined
      ? undefined
      : createReconciler({
          ...{ accounts, ledger, afterMs, giveUpMs, timeoutMs },
          ...(emulator && { sleep: emulator.clock.sleep }),
          ...{ report, tracing },
        });
  const shutdown = createShutdown({
    times: config.shutdown,
    accounts,
    watchedFiles: [authentication, tlsFiles],
    ...{ ...edges, admin, core, reconciler, stores, tracing, durations: told.durations, emulator },
  });
  const adminUrl = await listen(admin, "ADMIN_ADDR", config.adminAddress);

  return {
    publicUrl: listeningUrl,
    ...{ rpcUrl, adminUrl },
    /** In sandbox mode. */
    sandboxUrl: emulator?.url,
    stop: shutdown.stop,
  };
}

/** What all parts are made with. */
interface Common {
  readonly config: Config;
  readonly log: Logger;
  readonly telemetry: Telemetry;
  readonly tracing: RunningTracing;
  readonly budget: MemoryBudget;
}

type Back = Awaited<ReturnType<typeof openBack>>;

/** What the use cases work with: the stores, and the payments service or the sandbox in its place. */
async function openBack({ config, log, telemetry, tracing, budget }: Common, sandbox: object) {
  const { report } = telemetry;
  const keyrings = await deriveKeyrings([...config.accounts.values()]);
  // Tests advance the sandbox's clock; stores in memory follow it.
  let clock: Emulator["clock"] | undefined;
  const now = () => clock?.now() ?? Date.now();
  const stores = await openStores(config, keyrings, report, log, now);
  const { ledger } = stores;

  const { sandboxAddress: address, dataDirectory } = config;
  const emulator =
    address &&
    (await startEmulator(
      { ...ofAccount(config.accounts, "default"), address },
      {
        log: (record: object) => log.debug({ sandbox: record }, "sandbox"),
        ...(dataDirectory !== undefined && { stateFile: join(dataDirectory, "sandbox.sqlite") }),
        ...sandbox,
      },
    ));
  clock = emulator?.clock;
  const accounts = new Map<string, Account>();
  for (const [name, configured] of config.accounts) {
    const account = emulator ? { ...configured, url: emulator.url } : configured;
    const bucket = stores.bucketOf(name, report);
    const upstream = createUpstream({
      ...{ account, bucket, timeoutMs: config.upstreamTimeoutMs, report, tracing },
      ...{ payoutEnds: config.payoutEnds, budget },
    });
    accounts.set(name, { bucket, upstream });
  }
  return { keyrings, stores, ledger, emulator, accounts };
}

/** The two edges and the callbacks, on their listeners, which do not listen yet. */
function createEdges(
  { config, log, telemetry, tracing, budget }: Common,
  { emulator, ledger }: Back,
  core: Core,
  identify: Identify,
  tlsFiles: TlsFiles | undefined,
) {
  const { report, durations } = telemetry;
  const common = { log, report, tracing };
  const admission = createAdmission({ maxCalls: config.maxConcurrentCalls });
  const intake = new Intake({ budget, admission });
  const { maxConnections, maxConnectionsPerAddress } = config;
  const counts = { maxConnections, maxConnectionsPerAddress };
  const graphql = createGraphqlServer({
    ...{ ...common, core, admission, intake, identify },
    production: config.production,
    corsOrigins: config.corsOrigins,
    introspection: config.graphqlIntrospection,
    heartbeatMs: config.heartbeatMs,
    schema: config.graphqlSubgraph ? createSubgraphSchema(new Set(config.accounts.keys())) : schema,
    trustedDocuments: config.trustedDocuments,
  });
  const callbacks = createCallbackHandler({
    accounts: config.accounts,
    ...{ payoutEnds: config.payoutEnds, ledger, intake },
    ...{ report, tracing },
  });
  // The demo's pages call without credentials.
  const demo = emulator && config.auth.modes.has("none") ? emulator.createDemo() : undefined;
  const misdirection = createHostGuard(config, config.publicAddress);
  const publicServer = createPublicServer({
    ...{ graphql: graphql.handle, watch: graphql.handleWatch, callbacks, demo },
    ...{ counts, intake, report, misdirection, isTimed: durations !== undefined },
  });
  noteRefusedOrigins(publicServer, config, log);
  const closeSockets = graphql.attachWebSocket(publicServer, misdirection);
  const rpc = createRpcServer({
    ...{ ...common, core, admission, intake, identify },
    misdirection: createHostGuard(config, config.rpcAddress),
    limits: { ...config.rpcConnections, ...counts },
    ...(tlsFiles ? { tls: tlsFiles.content } : {}),
  });
  return { admission, intake, graphql, publicServer, closeSockets, rpc };
}

/** In sandbox mode a random secret will do; real replicas share a configured one. */
function watchTokensOf(config: Config): WatchTokens | undefined {
  const { watchTokenSecret, watchTokenPreviousSecrets, sandboxAddress } = config;
  if (watchTokenSecret) return createWatchTokens(watchTokenSecret, watchTokenPreviousSecrets);
  if (!sandboxAddress) return undefined;
  return createWatchTokens(new Secret(randomBytes(32).toString("base64url")));
}
