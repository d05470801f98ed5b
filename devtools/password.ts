import { readFileSync } from "node:fs";
import { buffer } from "node:stream/consumers";
import { wrongUsage } from "../src/cli/command-error.ts";
import { secretIn } from "../src/cli/gateway-options.ts";
import { readSandboxConfig } from "../src/config/config.ts";
import { type Environment, textOf } from "../src/config/environment.ts";
import { Secret } from "../src/secrets/secret.ts";

export const passwordHelp = `The password is that of the merchant account at the payments service: from
--password-file (one line break at its end does not count), else UPSTREAM_PASSWORD or
UPSTREAM_PASSWORD_FILE.`;

/**
 * The merchant's API password: that of --password-file, else UPSTREAM_PASSWORD.
 * @throws CommandError when none is given, ConfigError when it is given twice
 */
export function passwordOf(file: string | undefined, env: Environment): Secret {
  const password = textOf(withFile(file, env), "UPSTREAM_PASSWORD");
  if (password !== undefined) return new Secret(password);
  throw wrongUsage("no password: give --password-file, or set UPSTREAM_PASSWORD");
}

/** Like `passwordOf`; without a file also the passwords of UPSTREAM_PREVIOUS_PASSWORDS. */
export function passwordsOf(file: string | undefined, env: Environment): (Secret | string)[] {
  const password = passwordOf(file, env);
  if (file !== undefined) return [password];
  return [password, ...(textOf(env, "UPSTREAM_PREVIOUS_PASSWORDS") ?? "").split(",")];
}

/** Like `passwordOf`, but defaults to the sandbox's password. @throws ConfigError */
export function passwordOrSandbox(file: string | undefined, env: Environment): Secret {
  return readSandboxConfig(withFile(file, env)).password;
}

/** The environment, with the password in this file in place of its own. @throws CommandError */
function withFile(file: string | undefined, env: Environment): Environment {
  if (file === undefined) return env;
  return { ...env, UPSTREAM_PASSWORD: secretIn(file), UPSTREAM_PASSWORD_FILE: undefined };
}

/** The bytes of a file, or of standard input for `-`. @throws CommandError */
export async function bytesOf(file: string): Promise<Buffer> {
  if (file === "-" && process.stdin.isTTY)
    throw wrongUsage("standard input is a terminal: give a file");
  try {
    return file === "-" ? await buffer(process.stdin) : readFileSync(file);
  } catch (error) {
    throw wrongUsage(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}
