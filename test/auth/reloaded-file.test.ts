import assert from "node:assert/strict";
import fs, { writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { reloadedFile } from "../../src/auth/reloaded-file.ts";
import { directory } from "../stores/sqlite/directories.ts";
import { until } from "../until.ts";
import { keyFile } from "./issuer.ts";

test("a changed file that cannot be read at first is read again", {
  timeout: 30_000,
}, async (t) => {
  const path = join(directory(t), "file");
  writeFileSync(path, "first");
  const problems: unknown[] = [];
  const onProblem = (error: unknown) => void problems.push(error);
  const file = reloadedFile(keyFile(path, undefined, onProblem), (text) => text);
  t.after(() => file.close());
  const read = t.mock.method(fs, "readFileSync", () => {
    throw Object.assign(new Error("too many open files"), { code: "EMFILE" });
  });
  syncBuiltinESMExports();
  t.after(() => {
    read.mock.restore();
    syncBuiltinESMExports();
  });
  writeFileSync(path, "second, and longer");
  await until(() => read.mock.callCount() > 2);
  assert.equal(problems.length, 1, "it is reported once");
  read.mock.restore();
  syncBuiltinESMExports();
  await until(() => file.content === "second, and longer");
});
