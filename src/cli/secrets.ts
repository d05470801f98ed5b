import { readFileSync } from "node:fs";
import { buffer } from "node:stream/consumers";
import { readSandboxConfig, type SandboxConfig } from "../config/config.ts";
import { type Environment, textOf } from "../config/environment.ts";
import { Secret } from "../secrets/secret.ts";
import { wrongUsage } from "./command-error.ts";

export type { Environment };

export const passwordHelp = `The password is that of the merchant account at the payments service: from
--password-file (one line break at its end does not count), else UPSTREAM_PASSWORD or
UPSTREAM_PASSWORD_FILE.`;

/**
 * The merchant's API password, from the file or from UPSTREAM_PASSWORD.
 * @throws CommandError when none is given, ConfigError when it is given twice
 */
export function passwordOf(file: string | undefined, env: Environment): Secret {
  const password = file === undefined ? textOf(env, "UPSTREAM_PASSWORD") : secretOfFile(file);
  if (password !== undefined) return new Secret(password);
  throw wrongUsage("no password: give --password-file, or set UPSTREAM_PASSWORD");
}

/** Like `passwordOf`; without a file also the passwords of UPSTREAM_PREVIOUS_PASSWORDS. */
export function passwordsOf(file: string | undefined, env: Environment): (Secret | string)[] {
  const password = passwordOf(file, env);
  if (file !== undefined) return [password];
  return [password, ...(textOf(env, "UPSTREAM_PREVIOUS_PASSWORDS") ?? "").split(",")];
}

/** Like `passwordOf`, but defaults to the sandbox's password. */
export function passwordOrSandbox(file: string | undefined, env: Environment): Secret {
  if (file !== undefined) return new Secret(secretOfFile(file));
  return sandboxCredentials(env).password;
}

/** What a sandbox takes that was started with this environment. @throws ConfigError */
export function sandboxCredentials(env: Environment): Pick<SandboxConfig, "login" | "password"> {
  return readSandboxConfig(env);
}

/** The secret in a file, without the line break that editors add at the end. */
export function secretOfFile(file: string): string {
  // Without a byte order mark, as `serve` reads files.
  const secret = new TextDecoder().decode(bytesOfFile(file)).replace(/\r?\n$/, "");
  if (secret === "") throw wrongUsage(`${file} is empty`);
  return secret;
}

/** @throws CommandError */
export function bytesOfFile(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw wrongUsage(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

/** The bytes of a file, or of standard input for `-`. @throws CommandError */
export async function bytesOf(file: string): Promise<Buffer> {
  if (file !== "-") return bytesOfFile(file);
  if (process.stdin.isTTY) throw wrongUsage("standard input is a terminal: give a file");
  return buffer(process.stdin);
}
