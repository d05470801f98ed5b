import { readVariables } from "../config/environment.ts";
import { CommandError, exitCodes } from "./command-error.ts";
import type { Environment } from "./secrets.ts";

/** The directory that DATA_DIR names. @throws CommandError if it is not set */
export function dataDirectoryOf(env: Environment): string {
  const { DATA_DIR: directory } = readVariables(env, ["DATA_DIR"]);
  if (directory !== undefined) return directory;
  throw new CommandError("no directory is named: set DATA_DIR", exitCodes.config);
}
