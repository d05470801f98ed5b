import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { directory } from "../stores/sqlite/directories.ts";
import { runScript } from "./script.ts";

test("accepts a page whose files exist, by whatever path it names them", async (t) => {
  const text = [
    "`src/cli.ts`, `src/core`, `core/core.ts`, `proto/payments/v1/*.proto`, `here.txt`,",
    "and what is no path: `wallet/find`, `application/json`, `src/core/{name}.ts`, `SELECT 1`.",
  ].join("\n");
  assert.deepEqual(await check(t, text), { code: 0, named: [] });
});

test("names each file that does not exist", async (t) => {
  const text = "`src/gone.ts`, `core/gone.ts`, `proto/gone/*.proto`, `src/cli.ts`, `docs/gone`";
  const { code, named } = await check(t, text);
  assert.equal(code, 1);
  assert.deepEqual(named, ["src/gone.ts", "core/gone.ts", "proto/gone/*.proto", "docs/gone"]);
});

async function check(t: TestContext, text: string) {
  const page = join(directory(t), "page.md");
  await writeFile(page, text);
  const { code, err } = await runScript("docs/paths.ts", [page]);
  const named = [...err.matchAll(/^ {2}.*page\.md: (.*)$/gm)].map(([, path]) => path!);
  return { code, named };
}
