import { Option } from "commander";
import { readVariables } from "../config/environment.ts";
import { StoreRefused } from "../stores/sqlite/errors.ts";
import { CommandError, exitCodes } from "./command-error.ts";
import type { Environment } from "./secrets.ts";

/** The option that names a state directory other than DATA_DIR. */
export function dataDirOption(): Option {
  return new Option(
    "--data-dir <directory>",
    "where the gateway keeps its state (default: DATA_DIR)",
  );
}

/** The directory of the option, else of DATA_DIR. @throws CommandError if neither is set */
export function dataDirectoryOf(given: string | undefined, env: Environment): string {
  const found = given ?? readVariables(env, ["DATA_DIR"]).DATA_DIR;
  if (found !== undefined) return found;
  throw new CommandError(
    "no directory is named: set DATA_DIR, or give --data-dir",
    exitCodes.config,
  );
}

/** Runs an action on a store. @throws CommandError if the store refuses the directory */
export async function onStore<T>(run: () => T | Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof StoreRefused) throw new CommandError(`${error.about}: ${error.message}`);
    throw error;
  }
}
