import {
  chmodSync,
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { messageOf, StoreRefused, sqliteCodes } from "./errors.ts";
import { migrate } from "./schema.ts";

/** The database's name in its directory; SQLite keeps `-wal` and `-shm` beside it. */
export const databaseFile = "gateway.sqlite";

/**
 * Opens the store of a directory for this process alone, and creates it if there is none. The lock
 * belongs to the operating system: it ends with `close`, or when nothing refers to that, or with the
 * process, however that ends.
 * @throws StoreRefused
 */
export function openDirectory(directory: string, synchronous: "FULL" | "OFF" = "FULL") {
  let lock: DatabaseSync | undefined;
  try {
    makeDirectory(directory);
    // A copied backup may be one that others can read.
    for (const path of refuseWhatOthersWrite(directory)) chmodSync(path, 0o600);
    const held = takeLock(directory);
    lock = held;
    const path = join(directory, databaseFile);
    const database = openFile(path, synchronous);
    const { dev, ino } = statSync(path);
    return {
      database,
      /** @throws Error if the file was deleted or replaced: what is written to it is lost with this process */
      assertInPlace() {
        const now = statSync(path, { throwIfNoEntry: false });
        if (now?.ino !== ino || now.dev !== dev) throw new Error(notInPlace);
      },
      close() {
        database.close();
        held.close();
      },
    };
  } catch (error) {
    lock?.close();
    throw refusalOf(error);
  }
}

const notInPlace = `${databaseFile} was deleted or replaced while the gateway ran: restart it`;

/** Does not create parent directories: a missing one may be a disk that is not mounted. */
function makeDirectory(directory: string): void {
  try {
    mkdirSync(directory, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EEXIST") {
      throw new StoreRefused(`is not a directory and cannot be created (${code})`);
    }
  }
  if (!statSync(directory).isDirectory()) throw new StoreRefused("is not a directory");
}

/** The sandbox's own database in the same directory, which only its package opens. */
export const sandboxFile = "sandbox.sqlite";

const withLog = (name: string) => [name, `${name}-wal`, `${name}-shm`];
/** All files of the directory. */
const files = [...withLog(databaseFile), ...withLog(sandboxFile), "lock", "pid"];

/**
 * Whoever can write to the store can write payments and callbacks. A symbolic link is refused
 * because the gateway would write to its target; the directory itself may be one.
 * @returns the paths of the files that are there
 * @throws StoreRefused naming the command that ends it
 */
export function refuseWhatOthersWrite(directory: string): string[] {
  const found = modeOf(statSync(directory));
  if (found & writableByOthers) {
    throw new StoreRefused(
      `can be written by other users (mode ${found.toString(8)}): run chmod 700 ${directory}, or name a directory inside it, which the gateway creates`,
    );
  }
  return files.flatMap((name) => {
    const path = join(directory, name);
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (!stats) return [];
    if (stats.isSymbolicLink()) {
      throw new StoreRefused(`${name} is a symbolic link: put the file itself there`);
    }
    if (!stats.isFile()) throw new StoreRefused(`${name} is not a file: move it away`);
    const mode = modeOf(stats);
    if (mode & writableByOthers) {
      throw new StoreRefused(
        `${name} can be written by other users (mode ${mode.toString(8)}): make sure that nobody changed it, then run chmod 600 ${path}`,
      );
    }
    return path;
  });
}

const writableByOthers = 0o022;

function modeOf({ mode }: { readonly mode: number }): number {
  return mode & 0o7777;
}

/** @throws StoreRefused naming the process that holds the lock */
function takeLock(directory: string): DatabaseSync {
  const path = join(directory, "lock");
  createPrivate(path);
  const lock = new DatabaseSync(path);
  try {
    lock.exec("PRAGMA locking_mode = EXCLUSIVE");
    lock.exec("BEGIN EXCLUSIVE");
    writeFileSync(join(directory, "pid"), `${process.pid}\n`, { mode: 0o600 });
    return lock;
  } catch (error) {
    lock.close();
    const { errcode } = error as { errcode?: number };
    if (errcode === sqliteCodes.busy) {
      throw new StoreRefused(
        `is in use by another gateway, the process with the pid ${pidIn(directory)}: one directory is for one process`,
      );
    }
    throw error;
  }
}

/** The pid of the process that holds the directory's lock; undefined if none does. */
export function holderOf(directory: string): string | undefined {
  const path = join(directory, "lock");
  if (!existsSync(path)) return undefined;
  try {
    inDatabase(path, (lock) => lock.exec("BEGIN EXCLUSIVE"));
    return undefined;
  } catch (error) {
    if ((error as { errcode?: number }).errcode === sqliteCodes.busy) return pidIn(directory);
    throw refusalOf(error);
  }
}

function pidIn(directory: string): string {
  try {
    return readFileSync(join(directory, "pid"), "utf8").trim();
  } catch {
    return "unknown";
  }
}

/** Larger files are not read from end to end at each start; the command `check` reads them. */
const quickCheckBytes = 256 * 1024 * 1024;

function openFile(path: string, synchronous: "FULL" | "OFF"): DatabaseSync {
  createPrivate(path);
  refuseForeignLog(path);
  const { size } = statSync(path);
  const database = new DatabaseSync(path);
  try {
    // The command `backup` may read at the same time; it blocks writes only briefly.
    database.exec("PRAGMA busy_timeout = 5000");
    database.exec(`PRAGMA synchronous = ${synchronous}`);
    database.exec("PRAGMA journal_size_limit = 67108864");
    database.exec("PRAGMA cache_size = -16000");
    if (size <= quickCheckBytes) checkPages(database, "quick_check");
    migrate(database);
    // Before it has a log: until then it is a backup, whatever ends the process.
    if (!keepsLog(path)) database.exec("UPDATE accounts SET epoch = lower(hex(randomblob(4)))");
    database.exec("PRAGMA journal_mode = WAL");
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * A backup that was put in the place of a database whose gateway was killed: SQLite would write what
 * the log of that one holds into it.
 * @throws StoreRefused
 */
export function refuseForeignLog(path: string): void {
  const log = `${path}-wal`;
  if ((statSync(log, { throwIfNoEntry: false })?.size ?? 0) === 0 || keepsLog(path)) return;
  throw new StoreRefused(
    `${databaseFile} is a backup, and ${databaseFile}-wal is not its log but that of the database before it: move ${databaseFile}-wal and ${databaseFile}-shm away`,
  );
}

/**
 * Whether a database keeps a log, by its file's header. A gateway's does, a backup does not until a
 * gateway opens it. Then it gets new epochs: clients with old cursors start again instead of missing
 * the events that it lacks.
 */
function keepsLog(path: string): boolean {
  const header = Buffer.alloc(20);
  const file = openSync(path, "r");
  try {
    readSync(file, header, 0, header.length, 0);
  } finally {
    closeSync(file);
  }
  return header[18] !== 1;
}

/** @throws StoreRefused for a damaged file */
export function checkPages(database: DatabaseSync, how: "quick_check" | "integrity_check"): void {
  const [found] = Object.values(database.prepare(`PRAGMA ${how}(1)`).get() ?? {});
  if (found !== "ok") throw new StoreRefused(`${damaged}: ${String(found)}`);
}

const damaged = `${databaseFile} is damaged: restore a backup, or move the file away to start with an empty one`;

/** Opens a database for as long as it is used. */
export function inDatabase<T>(
  path: string,
  use: (database: DatabaseSync) => T,
  options: { readonly readOnly?: boolean } = {},
): T {
  const database = new DatabaseSync(path, options);
  try {
    return use(database);
  } finally {
    database.close();
  }
}

/** The StoreRefused for a file that cannot be opened. */
export function refusalOf(error: unknown): StoreRefused {
  if (error instanceof StoreRefused) return error;
  const { code, errcode } = error as { code?: string; errcode?: number };
  const primary = errcode === undefined ? undefined : errcode & 0xff;
  if (primary === sqliteCodes.notADatabase) {
    return new StoreRefused(
      `${databaseFile} is damaged or not a SQLite database: move it away, or restore a backup`,
    );
  }
  if (primary === sqliteCodes.corrupt) return new StoreRefused(`${damaged}: ${messageOf(error)}`);
  if (code === "ENOSPC" || primary === sqliteCodes.full) {
    return new StoreRefused("cannot be written, the disk is full: free space first");
  }
  return new StoreRefused(`cannot be written: ${messageOf(error)}`);
}

/** Creates a file for its owner alone; SQLite gives the files beside it the same permissions. */
function createPrivate(path: string): void {
  closeSync(openSync(path, "a", 0o600));
}
