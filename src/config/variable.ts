import { readFileSync } from "node:fs";
import { ConfigError } from "./config-error.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The text of one variable. An empty variable counts as not set. A secret or a URL may be given as
 * the content of the file that `<variable>_FILE` names.
 */
export function textOf(env: Environment, variable: string): string | undefined {
  const text = env[variable] === "" ? undefined : env[variable];
  if (!/_(PASSWORDS?|SECRETS?|URL)$/.test(variable)) return text;
  const file = env[`${variable}_FILE`];
  if (!file) return text;
  if (text !== undefined) {
    throw new ConfigError(variable, `is given twice: also as ${variable}_FILE`);
  }
  return fileText(`${variable}_FILE`, file).replace(/\r?\n$/, "");
}

/** @throws ConfigError naming the variable, when the file cannot be read */
function fileText(variable: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new ConfigError(
      variable,
      `${path} cannot be read (${(error as NodeJS.ErrnoException).code})`,
    );
  }
}

/** @throws ConfigError naming the variable */
export function jsonOf(variable: string, file: string): unknown {
  const text = fileText(variable, file);
  try {
    return JSON.parse(text);
  } catch {
    throw new ConfigError(variable, `${file}: is not JSON`);
  }
}
