import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { checkPages, databaseFile, refusalOf } from "./directory.ts";
import { noteFact } from "./facts.ts";
import { StoreRefused } from "./store-refused.ts";

/**
 * Copies the store of a directory into one file, as it is at one instant, also while a gateway writes
 * it. The file is there whole, and on the disk, or not at all.
 * @returns its size in bytes
 * @throws StoreRefused
 */
export function backUp(directory: string, file: string): number {
  const source = join(directory, databaseFile);
  if (!existsSync(source)) throw new StoreRefused(`has no ${databaseFile}`);
  if (existsSync(file)) throw new StoreRefused(`${file} exists already`);
  const partial = `${file}.partial`;
  rmSync(partial, { force: true });
  try {
    // For its owner alone, before anything is in it; SQLite fills a file that is empty.
    closeSync(openSync(partial, "wx", 0o600));
    copyInto(source, partial);
    markAsCopy(partial);
    sync(partial);
    renameSync(partial, file);
    sync(dirname(file));
    return statSync(file).size;
  } catch (error) {
    rmSync(partial, { force: true });
    throw error instanceof StoreRefused ? error : refusalOf(error);
  }
}

function copyInto(source: string, file: string): void {
  const database = new DatabaseSync(source);
  try {
    database.exec("PRAGMA busy_timeout = 5000");
    database.prepare("VACUUM INTO ?").run(file);
  } finally {
    database.close();
  }
}

function markAsCopy(file: string): void {
  const copy = new DatabaseSync(file);
  try {
    checkPages(copy, "integrity_check");
    noteFact(copy, "copied");
  } finally {
    copy.close();
  }
}

function sync(path: string): void {
  const descriptor = openSync(path, "r");
  fsyncSync(descriptor);
  closeSync(descriptor);
}
