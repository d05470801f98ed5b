import { join } from "node:path";
import type { Config, SandboxConfig } from "../config/config.ts";
import type { Address } from "../config/kinds.ts";
import { ConfigError, ofAccount } from "../errors.ts";
import type { Logger } from "../report.ts";
import { listening } from "./listening.ts";

/** The running emulator, which is a package of its own: `sandbox/`. */
export type Emulator = Awaited<ReturnType<typeof startEmulator>>;

/** Starts the emulator inside a gateway, for its one account. @throws ConfigError */
export async function startInnerEmulator(
  address: Address,
  { accounts, dataDirectory }: Config,
  log: Logger,
  settings: object,
): Promise<Emulator> {
  const { login, password } = ofAccount(accounts, "default");
  return startEmulator(
    { address, login, password },
    {
      log: (record: object) => log.debug({ sandbox: record }, "sandbox"),
      ...(dataDirectory !== undefined && { stateFile: join(dataDirectory, "sandbox.sqlite") }),
      ...settings,
    },
  ).catch((error: Error) => {
    throw error.name === "SavedStateError" ? new ConfigError("DATA_DIR", error.message) : error;
  });
}

/**
 * Loads the package and starts the emulator.
 * @param settings options of the emulator that the gateway only passes on
 * @throws ConfigError if the address cannot be listened on
 */
export async function startEmulator(
  { address, login, password }: Pick<SandboxConfig, "address" | "login" | "password">,
  settings: object = {},
) {
  const [{ startSandbox }, { createDemo }, { magicValues }] = await Promise.all([
    import("@payments-gateway/sandbox"),
    import("@payments-gateway/sandbox/demo"),
    import("@payments-gateway/sandbox/scenarios"),
  ]);
  const sandbox = await listening("SANDBOX_ADDR", address, (at) =>
    startSandbox({ ...at, login, password, ...settings }),
  );
  return { ...sandbox, magicValues, createDemo };
}
