import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { backUp, refusalOfCopy } from "../../../src/stores/sqlite/backup.ts";
import { openDirectory, refusalOf } from "../../../src/stores/sqlite/directory.ts";
import { StoreRefused } from "../../../src/stores/sqlite/errors.ts";
import { inspectDirectory } from "../../../src/stores/sqlite/inspect.ts";
import { markMoved, migrate, migrations } from "../../../src/stores/sqlite/schema.ts";
import { directory, inDatabase } from "./directories.ts";

describe("the directory of the embedded store", () => {
  const refused = (
    path: string,
    message: RegExp,
    open: (path: string) => unknown = openDirectory,
  ) => assert.throws(() => open(path), { name: "StoreRefused", message });

  /** Starts another process that holds the directory. */
  async function holder(t: TestContext, path: string): Promise<ChildProcess> {
    const script = new URL("./holder.ts", import.meta.url).pathname;
    const child = spawn(process.execPath, ["--expose-gc", script, path], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    t.after(() => child.kill("SIGKILL"));
    await once(child.stdout, "data");
    return child;
  }

  it("is for one process: the refusal of a second one names the pid of the first", async (t) => {
    const path = directory(t);
    const { pid } = await holder(t, path);
    // Give the holder time to collect garbage, which must not release its lock.
    await delay(100);
    refused(path, new RegExp(`in use by another gateway, the process with the pid ${pid}:`));
  });

  it("is free as soon as its process is killed, in spite of the files left behind", async (t) => {
    const path = directory(t);
    const child = await holder(t, path);
    child.kill("SIGKILL");
    await once(child, "exit");
    assert.equal(readFileSync(join(path, "pid"), "utf8"), `${child.pid}\n`);
    openDirectory(path).close();
  });

  it("is created, for its owner alone, if its parent exists", (t) => {
    const path = join(directory(t), "data");
    const { database, close } = openDirectory(path);
    assert.equal(statSync(path).mode & 0o777, 0o700);
    database.exec("INSERT INTO facts (name, value) VALUES ('for', 'the log')");
    for (const file of ["gateway.sqlite", "gateway.sqlite-wal", "lock", "pid"]) {
      assert.equal(statSync(join(path, file)).mode & 0o777, 0o600, file);
    }
    close();
    refused(join(path, "no", "such"), /cannot be created \(ENOENT\)/);
  });

  it("writes each commit through to the disk", (t) => {
    const { database, close } = openDirectory(directory(t));
    const pragma = (name: string) => Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {});
    assert.deepEqual(pragma("synchronous"), [2], "FULL");
    assert.deepEqual(pragma("journal_mode"), ["wal"]);
    close();
  });

  it("is refused when it is a file or cannot be written", (t) => {
    const file = join(directory(t), "file");
    writeFileSync(file, "");
    refused(file, /is not a directory/);
    refused("/proc", /cannot be written/);
  });

  it("is refused with that reason when the disk is full", (t) => {
    const small = new DatabaseSync(":memory:");
    t.after(() => small.close());
    small.exec("PRAGMA max_page_count = 2; CREATE TABLE large (bytes BLOB)");
    assert.throws(
      () => small.exec("INSERT INTO large VALUES (zeroblob(100000))"),
      (error: unknown) => {
        const copy = refusalOfCopy(error, "/backups/copy");
        assert.equal(copy.about, "/backups/copy", "a backup fills its own disk");
        for (const { message } of [refusalOf(error), copy]) {
          assert.match(message, /the disk is full: free space first/);
        }
        return true;
      },
    );
  });

  it("is refused when others may write to it or its files, with the command that ends it", (t) => {
    const path = directory(t);
    for (const mode of [0o777, 0o1777, 0o770, 0o702]) {
      chmodSync(path, mode);
      refused(path, new RegExp(`${mode.toString(8)}.*chmod 700 ${path}`));
    }
    assert.equal(existsSync(join(path, "lock")), false);
    chmodSync(path, 0o755);
    openDirectory(path).close();
    for (const name of ["gateway.sqlite", "lock", "pid"]) {
      chmodSync(join(path, name), 0o666);
      refused(path, new RegExp(`${name} .*666.*chmod 600 ${join(path, name)}`));
      chmodSync(join(path, name), 0o600);
    }
    openDirectory(path).close();
  });

  it("keeps others from reading a file that was put there for all to read", (t) => {
    const path = directory(t);
    openDirectory(path).close();
    chmodSync(join(path, "gateway.sqlite"), 0o644);
    const { close } = openDirectory(path);
    t.after(close);
    for (const name of ["gateway.sqlite", "gateway.sqlite-wal"]) {
      assert.equal(statSync(join(path, name)).mode & 0o777, 0o600, name);
    }
  });

  it("is refused with a symbolic link in place of a file, whose target stays as it is", (t) => {
    const outside = join(directory(t), "outside");
    for (const name of ["gateway.sqlite", "gateway.sqlite-wal", "lock", "pid"]) {
      const path = directory(t);
      writeFileSync(outside, "of somebody else");
      symlinkSync(outside, join(path, name));
      refused(path, new RegExp(`${name} is a symbolic link`));
      assert.equal(readFileSync(outside, "utf8"), "of somebody else");
      const dangling = directory(t);
      symlinkSync(join(dangling, "nowhere"), join(dangling, name));
      refused(dangling, new RegExp(`${name} is a symbolic link`));
      assert.equal(existsSync(join(dangling, "nowhere")), false);
    }
    // The directory itself may be a link, to where its disk is mounted.
    const linked = join(directory(t), "data");
    symlinkSync(directory(t), linked);
    openDirectory(linked).close();
  });

  it("is refused with a file of another program, which stays unchanged", (t) => {
    const path = directory(t);
    const file = join(path, "gateway.sqlite");
    writeFileSync(file, "a letter to the editor, of some length".repeat(100));
    refused(path, /is damaged or not a SQLite database/);
    const other = directory(t);
    inDatabase(other, (foreign) => foreign.exec("CREATE TABLE shopping (item TEXT)"));
    refused(other, /belongs to another program/);
    refused(other, /belongs to another program/, inspectDirectory);
    assert.match(readFileSync(file, "utf8"), /^a letter/);
  });

  it("is refused with a damaged file", (t) => {
    const path = directory(t);
    const { database, close } = openDirectory(path);
    const insert = database.prepare(
      "INSERT INTO events (account, place, topic, bytes) VALUES (1, ?, 'x', ?)",
    );
    for (let i = 0; i < 200; i++) insert.run(`${i}`.padStart(18, "0"), Buffer.alloc(1_000));
    close();
    const file = openSync(join(path, "gateway.sqlite"), "r+");
    for (let page = 3; page < 40; page++)
      writeSync(file, Buffer.alloc(512, 0x55), 0, 512, page * 4_096);
    refused(path, /gateway\.sqlite is damaged: restore a backup/);
  });

  it("is refused with a backup beside the log of the database that it replaces", (t) => {
    const path = directory(t);
    const [file, log] = [join(path, "gateway.sqlite"), join(path, "gateway.sqlite-wal")];
    const { database, close } = openDirectory(path);
    const copy = join(directory(t), "copy");
    backUp(path, copy);
    database.exec("INSERT INTO accounts (name, epoch, tail, floor) VALUES ('later', '', '', '')");
    // As a killed process leaves it.
    const left = readFileSync(log);
    close();
    copyFileSync(copy, file);
    writeFileSync(log, left, { mode: 0o600 });
    const why = /gateway.sqlite-wal is not its log .*: move gateway.sqlite-wal and/;
    refused(path, why);
    for (const other of [() => inspectDirectory(path), () => backUp(path, `${copy}-2`)]) {
      assert.throws(other, (error) => error instanceof StoreRefused && why.test(error.message));
    }
    assert.deepEqual(readFileSync(file), readFileSync(copy), "nothing was written into it");
    rmSync(log);
    openDirectory(path).close();
  });

  it("is refused with the file of a newer gateway", (t) => {
    const path = directory(t);
    const { database, close } = openDirectory(path);
    database.exec("PRAGMA user_version = 99");
    close();
    refused(path, /schema version 99, and this gateway knows \d+ at most/);
    refused(path, /schema version 99, and this gateway knows \d+ at most/, inspectDirectory);
  });

  it("is refused once it was moved to Redis", (t) => {
    const path = directory(t);
    const { database, close } = openDirectory(path);
    markMoved(database);
    close();
    for (const open of [openDirectory, inspectDirectory]) refused(path, /was moved to Redis/, open);
  });

  it("keeps an older version's data, and rolls back a migration that fails", (t) => {
    const database = new DatabaseSync(join(directory(t), "gateway.sqlite"));
    t.after(() => database.close());
    migrate(database);
    database.exec("INSERT INTO facts VALUES ('order', '1')");
    const steps = [...migrations, "ALTER TABLE facts ADD COLUMN more INTEGER"];
    assert.throws(() => migrate(database, [...steps, "CREATE TABLE broken ("]));
    migrate(database, steps);
    migrate(database, steps);
    assert.deepEqual(
      { ...database.prepare("SELECT * FROM facts").get() },
      { name: "order", value: "1", more: null },
    );
  });
});
