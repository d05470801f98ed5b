import type { SandboxConfig } from "../config/config.ts";
import { ConfigError } from "../errors.ts";
import { listening } from "./listening.ts";

/** The running emulator, which is a package of its own: `sandbox/`. */
export type Emulator = Awaited<ReturnType<typeof startEmulator>>;

/**
 * Loads the package and starts the emulator.
 * @param settings options of the emulator that the gateway only passes on
 * @throws ConfigError if the address cannot be listened on, or the saved state not be used
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
  ).catch((error: Error) => {
    throw error.name === "SavedStateError" ? new ConfigError("DATA_DIR", error.message) : error;
  });
  return { ...sandbox, magicValues, createDemo };
}
