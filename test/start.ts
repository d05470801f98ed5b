import type { Server } from "node:http";
import type { SandboxOptions } from "../sandbox/options.ts";
import { type Gateway, startGateway } from "../src/app/gateway.ts";
import { readConfig } from "../src/config/config.ts";
import type { Logger } from "../src/report.ts";
import { createLogger } from "../src/telemetry/log.ts";
import { listen } from "./listen.ts";

/**
 * The whole gateway on free ports, with the emulator inside unless the environment names an
 * upstream. The test stops it.
 */
export function startTestGateway(
  env: Record<string, string> = {},
  sandbox: Partial<SandboxOptions> = {},
  log = createLogger("silent"),
): Promise<Gateway> {
  const free = "127.0.0.1:0";
  return startGateway(
    readConfig({
      PUBLIC_ADDR: free,
      RPC_ADDR: free,
      ADMIN_ADDR: free,
      SANDBOX_ADDR: free,
      SHUTDOWN_TIMEOUT: "5s",
      // Calls of a test must not be refused because the machine is busy.
      MAX_CONCURRENT_CALLS: "0",
      ALLOW_VOLATILE: "true",
      ...env,
    }),
    log,
    { delays: { callbackMs: 5, settleMs: 50, payoutMs: 20, slowAnswerMs: 500 }, ...sandbox },
  );
}

/**
 * The whole gateway in front of `service`, a payments service that the test provides. The service
 * listens on a free port until the gateway stops.
 */
export async function startBefore(
  service: Server,
  env: Record<string, string>,
  path = "",
  log?: Logger,
): Promise<Gateway> {
  const port = await listen(service);
  const upstream = {
    UPSTREAM_URL: `http://127.0.0.1:${port}${path}`,
    UPSTREAM_LOGIN: "shop",
    UPSTREAM_PASSWORD: "password",
  };
  const gateway = await startTestGateway({ ...upstream, ...env }, {}, log);
  return {
    ...gateway,
    async stop() {
      await gateway.stop();
      service.closeAllConnections();
      service.close();
    },
  };
}
