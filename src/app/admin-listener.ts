import type { Server } from "node:http";
import { type ConsoleOptions, consoleRoutes } from "../admin/console.ts";
import { deadLetterRoutes } from "../admin/dead-letters.ts";
import { createOperatorIdentity } from "../admin/identify-operator.ts";
import { loadPage } from "../admin/page.ts";
import { sandboxRoutes } from "../admin/sandbox-actions.ts";
import { createAdminServer, type OpenRoutes } from "../admin/server.ts";
import { verifyOperator } from "../auth/create-authentication.ts";
import type { Verify } from "../auth/identify.ts";
import type { Config } from "../config/config.ts";
import type { Core } from "../core/core.ts";
import { createMaskedSchema } from "../graphql/schema/schema.ts";
import { createGraphqlServer, type GraphqlServer } from "../graphql/server.ts";
import type { Admission } from "../net/admission.ts";
import type { Intake } from "../net/intake.ts";
import { isLoopback } from "../net/loopback.ts";
import type { TlsFiles } from "../net/tls-files.ts";
import type { Logger } from "../report.ts";
import { expositionOf } from "../telemetry/metrics.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { Emulator } from "./emulator.ts";
import { createHostGuard } from "./host-guard.ts";
import type { Stores } from "./stores.ts";

export interface AdminListenerOptions
  extends Pick<ConsoleOptions, "accounts" | "activities" | "notReady"> {
  readonly core: Core;
  readonly verify: Verify;
  readonly stores: Stores;
  readonly admission: Admission;
  readonly intake: Intake;
  readonly tlsFiles: TlsFiles | undefined;
  readonly telemetry: Telemetry;
  /** URL of the public listener. */
  readonly publicUrl: () => string;
  /** Set in sandbox mode. */
  readonly emulator: Emulator | undefined;
}

/** The operators' listener: health, metrics, dead letters and the console. */
export function createAdminListener(
  config: Config,
  log: Logger,
  options: AdminListenerOptions,
): Server {
  const { accounts, activities, core, intake, stores, tlsFiles, emulator } = options;
  const { metrics, report, refresh } = options.telemetry;
  const { notReady, publicUrl } = options;
  const { ledger } = stores;
  const { maxConnections, maxConnectionsPerAddress } = config;
  const { adminKey } = config;
  const isOpen = config.auth.modes.has("none") && adminKey === undefined;
  const verify = adminKey ? verifyOperator(adminKey) : options.verify;
  const operators = createOperatorIdentity(verify, new Set(accounts.keys()));
  // Built when a page first asks, since a second schema costs a tenth of the start.
  let built: GraphqlServer | undefined;
  const graphql = () => {
    const { identify } = operators;
    built ??= createGraphqlServer({
      ...{ core, identify, log, intake, schema: createMaskedSchema(), production: true },
    });
    return built;
  };
  const routes = {
    ...consoleRoutes({
      ...{ accounts, activities, core, ledger, notReady, report },
      reconciler: { giveUpMs: config.reconcileGiveUpMs, afterMs: config.reconcileAfterMs },
      authenticated: !isOpen,
      reserve: config.rateLimit.reserve,
      links() {
        const url = config.publicUrl ?? publicUrl();
        return {
          graphiql: config.production ? undefined : `${url}/graphql`,
          demo: emulator && config.auth.modes.has("none") ? `${url}/demo` : undefined,
          ledger: emulator?.url,
        };
      },
    }),
    ...deadLetterRoutes(ledger, report, config.payoutEnds),
    ...(emulator && sandboxRoutes(core, emulator.magicValues)),
  };
  const page = loadPage();
  const open: OpenRoutes = {
    // The page holds no data: it requests what it shows, as the operator.
    "/": () => page,
    "/healthz": () => ({ status: 200, body: { status: "ok" } }),
    "/readyz"() {
      const reasons = notReady();
      const redis = stores.redisHealth?.();
      const credentialsRefused = activities.refused();
      const hasRefused = credentialsRefused.length > 0;
      const details =
        redis || hasRefused ? { redis, ...(hasRefused && { credentialsRefused }) } : undefined;
      return reasons.length === 0
        ? { status: 200, body: { status: "ready", details } }
        : { status: 503, body: { status: "not ready", reasons, details } };
    },
    async "/metrics"(accept) {
      const redis = stores.redisHealth?.();
      const { admission } = options;
      await refresh({ notReady, admission, tlsFiles, accounts, ledger, redis });
      const { contentType, text } = await expositionOf(metrics.registry, accept);
      const headers = { "content-type": contentType, vary: "accept" };
      return { status: 200, body: text, headers };
    },
  };
  return createAdminServer({
    ...{ open, routes, intake },
    operatorOf: operators.operatorOf,
    graphql: (request, response) => graphql().handle(request, response),
    onFailure: (error) => log.error({ err: error }, "admin request failed"),
    healthOnly: isOpen && !isLoopback(config.adminAddress.host),
    counts: { maxConnections, maxConnectionsPerAddress },
    misdirection: createHostGuard(config, config.adminAddress),
    onCut: (limit) => report("cut", { listener: "admin", limit }),
  });
}
