import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { databaseFile } from "../../../src/stores/sqlite/directory.ts";

/** In memory where possible, so that tests do not wait for disk syncs. */
const base = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/** Makes an empty directory; `remove` deletes it. */
export function freshDirectory(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(base, "payments-gateway-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Works on the database of a directory, beside any gateway. */
export function inDatabase<T>(directory: string, work: (database: DatabaseSync) => T): T {
  const database = new DatabaseSync(join(directory, databaseFile));
  try {
    return work(database);
  } finally {
    database.close();
  }
}

/** The path of an empty directory, which is deleted after the test, or after those of a suite. */
export function directory(t: { after(done: () => void): unknown }): string {
  const { path, remove } = freshDirectory();
  t.after(remove);
  return path;
}
