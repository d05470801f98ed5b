import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { checkPages, databaseFile, inDatabase, refusalOf, refuseForeignLog } from "./directory.ts";
import { StoreRefused, sqliteCodes } from "./errors.ts";

/**
 * Copies the store of a directory into one file, as of one instant, even while a gateway writes to
 * it. Either the complete file is on the disk afterwards, or none.
 * @returns its size in bytes
 * @throws StoreRefused
 */
export function backUp(directory: string, file: string): number {
  const source = join(directory, databaseFile);
  if (!existsSync(source)) throw new StoreRefused(`has no ${databaseFile}`);
  if (existsSync(file)) throw new StoreRefused("exists already", file);
  const partial = `${file}.partial`;
  try {
    rmSync(partial, { force: true });
    // Make it accessible to its owner alone while it is empty; SQLite fills an empty file.
    closeSync(openSync(partial, "wx", 0o600));
    refuseForeignLog(source);
    inDatabase(source, (database) => {
      database.exec("PRAGMA busy_timeout = 5000");
      database.prepare("VACUUM INTO ?").run(partial);
    });
    inDatabase(partial, (copy) => checkPages(copy, "integrity_check"));
    sync(partial);
    renameSync(partial, file);
    sync(dirname(file));
    return statSync(file).size;
  } catch (error) {
    if (existsSync(partial)) rmSync(partial);
    throw refusalOfCopy(error, file);
  }
}

/** The StoreRefused for a copy that failed: about the copy, or else about DATA_DIR. */
export function refusalOfCopy(error: unknown, file: string): StoreRefused {
  const refusal = refusalOf(error);
  // Errors of files name theirs, and here only the copy is opened as a file, and grows.
  const { path, errcode } = error as NodeJS.ErrnoException & { errcode?: number };
  const isOfCopy = path !== undefined || errcode === sqliteCodes.full;
  return isOfCopy ? new StoreRefused(refusal.message, file) : refusal;
}

function sync(path: string): void {
  const descriptor = openSync(path, "r");
  fsyncSync(descriptor);
  closeSync(descriptor);
}
