import type { Logger } from "pino";
import type { Config } from "../config/config.ts";
import { ConfigError } from "../config/config-error.ts";
import type { SandboxOptions } from "../sandbox/options.ts";
import { type Sandbox, startSandbox } from "../sandbox/server.ts";
import { listening } from "./listening.ts";

/** Starts the sandbox inside the process, for the account `default`. @throws ConfigError */
export async function startEmulator(
  config: Config,
  log: Logger,
  sandbox: Partial<SandboxOptions>,
): Promise<Sandbox> {
  const account = config.accounts.get("default");
  if (!account) throw new ConfigError("MERCHANTS_FILE", "the sandbox has the account default only");
  const { login, password } = account;
  const address = config.sandboxAddress ?? { host: "127.0.0.1", port: 0 };
  return listening("SANDBOX_ADDR", address, ({ host, port }) =>
    startSandbox({
      ...{ host, port, login, password },
      log: (record) => log.debug({ sandbox: record }, "sandbox"),
      ...sandbox,
    }),
  );
}
