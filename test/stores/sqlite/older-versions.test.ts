import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { it, type TestContext } from "node:test";
import { kernelRoom } from "../../../src/stores/sqlite/kernel.ts";
import { openStoreThread } from "../../../src/stores/sqlite/store-thread.ts";
import { freshDirectory } from "./directories.ts";

/** A directory whose database was made by these statements. */
function directoryOf(t: TestContext, fixture: string): string {
  const { path, remove } = freshDirectory();
  t.after(remove);
  const database = new DatabaseSync(join(path, "gateway.sqlite"));
  const statements = new URL(`../../fixtures/sqlite/${fixture}`, import.meta.url);
  database.exec(readFileSync(statements, "utf8"));
  database.close();
  return path;
}

it("a directory of the former layout is refused, with what to do", async (t) => {
  const directory = directoryOf(t, "former-layout.sql");
  const open = openStoreThread({ directory, rooms: { kernel: kernelRoom } });
  await assert.rejects(open, /layout of an unreleased gateway.*move the file away/);
});
