import { accessSync, constants, existsSync, statfsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import {
  checkPages,
  databaseFile,
  holderOf,
  refusalOf,
  refuseForeignLog,
  refuseWhatOthersWrite,
} from "./directory.ts";
import { StoreRefused } from "./errors.ts";
import { refuseMoved } from "./notes.ts";
import { layoutOf } from "./schema.ts";

/** What is found in a gateway's data directory. */
export interface Inspection {
  /** Pid of the process that holds the directory's lock, if one does. */
  readonly lockedBy?: string;
  /** Absent if there is no database yet. */
  readonly database?: { readonly version: number; readonly bytes: number };
  readonly freeBytes: number;
}

/**
 * Inspects the store of a directory without changing anything.
 * @throws StoreRefused when a gateway could not use it
 */
export function inspectDirectory(directory: string): Inspection {
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
  const freeBytes = bavail * bsize;
  const file = join(directory, databaseFile);
  if (!existsSync(file)) return { freeBytes };
  const lockedBy = holderOf(directory);
  const version = versionOf(file);
  return {
    ...(lockedBy !== undefined && { lockedBy }),
    database: { version, bytes: statSync(file).size },
    freeBytes,
  };
}

/** @throws StoreRefused */
function versionOf(file: string): number {
  refuseForeignLog(file);
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(file, { readOnly: true });
    checkPages(database, "integrity_check");
    const version = layoutOf(database);
    if (version > 0) refuseMoved(database);
    return version;
  } catch (error) {
    throw error instanceof StoreRefused ? error : refusalOf(error);
  } finally {
    database?.close();
  }
}
