import { join } from "node:path";
import type { MagicValue } from "../admin/sandbox-actions.ts";
import type { Config, SandboxConfig } from "../config/config.ts";

import type { Address } from "../config/kinds.ts";
import { ConfigError, ofAccount } from "../errors.ts";
import type { Logger } from "../report.ts";
import { listening } from "./listening.ts";
import type { Demo } from "./public-server.ts";

/** What the gateway needs of the emulator, which is a package of its own: `sandbox/`. */
export interface Emulator {
  /** Base address, without a slash at its end. */
  readonly url: string;
  readonly clock: EmulatorClock;
  /** What an operator may try from the console. */
  readonly magicValues: readonly MagicValue[];
  /** Reads the demo shop's pages. They call the gateway without credentials. */
  createDemo(): Demo;
  /** Stops listening, and ends timers and callbacks. */
  close(): Promise<void>;
}

/** The emulator's time, which a test can move forward. */
export interface EmulatorClock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after this time, in milliseconds, or as soon as the signal aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

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
): Promise<Emulator> {
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
