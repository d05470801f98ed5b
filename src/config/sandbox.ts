import { Secret } from "../secrets/secret.ts";
import { reader } from "./reader.ts";
import { type Address, address, login, logLevel, password } from "./values.ts";
import type { Environment } from "./variable.ts";

/** Configuration of the emulator as a process of its own. */
export interface SandboxConfig {
  readonly address: Address;
  readonly login: string;
  readonly password: Secret;
  readonly logLevel: string;
}

/** @throws ConfigError for the first variable that is wrong. */
export function readSandboxConfig(env: Environment): SandboxConfig {
  const read = reader(env);
  return {
    address: read("SANDBOX_ADDR", address, sandboxDefaults.address),
    login: read("UPSTREAM_LOGIN", login, sandboxDefaults.login),
    password: new Secret(read("UPSTREAM_PASSWORD", password, sandboxDefaults.password)),
    logLevel: read("LOG_LEVEL", logLevel, "info"),
  };
}

export const sandboxDefaults = {
  address: "127.0.0.1:4010",
  login: "sandbox",
  password: "sandbox-password",
} as const;
