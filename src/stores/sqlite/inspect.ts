import { accessSync, constants, existsSync, statfsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import {
  checkPages,
  databaseFile,
  holderOf,
  inDatabase,
  refusalOf,
  refuseForeignLog,
  refuseWhatOthersWrite,
} from "./directory.ts";
import { StoreRefused } from "./errors.ts";
import { layoutOf } from "./schema.ts";

/**
 * Inspects the store of a directory without changing anything.
 * @returns `lockedBy`, the pid of the process that holds its lock, if one does, and `database` if
 * there is one yet
 * @throws StoreRefused when a gateway could not use it
 */
export function inspectDirectory(directory: string) {
  const there = existsSync(directory);
  const nearest = there ? directory : dirname(directory);
  if (!existsSync(nearest)) throw new StoreRefused(`${nearest} does not exist`);
  if (!statSync(nearest).isDirectory()) throw new StoreRefused(`${nearest} is not a directory`);
  try {
    accessSync(nearest, constants.W_OK | constants.X_OK);
  } catch {
    throw new StoreRefused(`${nearest} cannot be written`);
  }
  if (there) refuseWhatOthersWrite(directory);
  const { bavail, bsize } = statfsSync(nearest);
  const file = join(directory, databaseFile);
  const isThere = existsSync(file);
  return {
    lockedBy: isThere ? holderOf(directory) : undefined,
    database: isThere ? { version: versionOf(file), bytes: statSync(file).size } : undefined,
    freeBytes: bavail * bsize,
  };
}

/** @throws StoreRefused */
function versionOf(file: string): number {
  refuseForeignLog(file);
  try {
    const check = (database: DatabaseSync) => {
      checkPages(database, "integrity_check");
      return layoutOf(database);
    };
    return inDatabase(file, check, { readOnly: true });
  } catch (error) {
    throw refusalOf(error);
  }
}
