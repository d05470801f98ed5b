import { Option } from "commander";
import { reader } from "../config/reader.ts";
import { directory } from "../config/values.ts";
import { StoreRefused } from "../sqlite/store-refused.ts";
import { CommandError, exitCodes } from "./command-error.ts";
import type { Environment } from "./secrets.ts";

/** Which directory a command is about, where it is not DATA_DIR. */
export function dataDirOption(): Option {
  return new Option(
    "--data-dir <directory>",
    "where the gateway keeps its state (default: DATA_DIR)",
  );
}

/** @throws CommandError when there is none */
export function dataDirectoryOf(given: string | undefined, env: Environment): string {
  const found = given ?? reader(env).optional("DATA_DIR", directory);
  if (found !== undefined) return found;
  throw new CommandError(
    "no directory is named: set DATA_DIR, or give --data-dir",
    exitCodes.config,
  );
}

/** Runs what works on a store; what makes it unfit ends the command. */
export async function onStore<T>(run: () => T | Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof StoreRefused) throw new CommandError(`DATA_DIR: ${error.message}`);
    throw error;
  }
}
