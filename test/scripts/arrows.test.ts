import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { directory } from "../stores/sqlite/directories.ts";
import { runScript } from "./script.ts";

test("accepts imports along the arrows", async (t) => {
  const files = {
    "rpc/a.ts": 'import { b } from "../core/b.ts";\nimport type { E } from "../errors.ts";',
    "core/b.ts": 'import {\n  type C,\n  c,\n} from "../ledger/redis/c.ts";',
    "ledger/redis/c.ts": 'export * from "../log.ts";',
    "cli/program.ts": 'const load = () => import("@payments-gateway/devtools/d");',
    "../devtools/d.ts":
      'import { e } from "@payments-gateway/sandbox";\nimport "../src/cli/terminal.ts";',
    "../sandbox/e.ts": 'import { encode } from "../src/wire/wire.ts";',
    "../sandbox/test/e.test.ts": 'import { start } from "../../src/app/gateway.ts";',
  };
  assert.deepEqual(await check(t, files), []);
});

const broken: Record<string, Record<string, string>> = {
  "core/a.ts -> rpc/b.ts (what core imports)": { "core/a.ts": 'import "../rpc/b.ts";' },
  "rpc/a.ts -> graphql/b.ts (what rpc imports)": {
    "rpc/a.ts": 'import type {\n  B,\n} from "../graphql/b.ts";',
  },
  "graphql/a.ts -> callbacks/b.ts (what graphql imports)": {
    "graphql/a.ts": 'const { b } = await import("../callbacks/b.ts");',
  },
  "sandbox/a.ts -> upstream/b.ts (what sandbox imports)": {
    "../sandbox/a.ts": 'export { b } from "../src/upstream/b.ts";',
  },
  "devtools/a.ts -> core/b.ts (what devtools imports)": {
    "../devtools/a.ts": 'import type { B } from "../src/core/b.ts";',
  },
  "app/a.ts -> sandbox/b.ts (only app/emulator.ts loads the sandbox)": {
    "app/a.ts": 'import { b } from "../../sandbox/b.ts";',
  },
  "admin/a.ts -> sandbox/ (only app/emulator.ts loads the sandbox)": {
    "admin/a.ts": 'import { b } from "@payments-gateway/sandbox";',
  },
  "cli/a.ts -> devtools/b/ (only cli/program.ts loads devtools)": {
    "cli/a.ts": 'const { b } = await import("@payments-gateway/devtools/b");',
  },
  "gen/a.ts -> errors.ts (generated code stands alone)": {
    "gen/a.ts": 'import { e } from "../errors.ts";',
  },
  "admin/b.ts -> app/gateway.ts (only serve starts the gateway)": {
    "admin/b.ts": 'import { start } from "../app/gateway.ts";',
  },
  "app/stores.ts -> cli/serve.ts (nobody imports commands)": {
    "app/stores.ts": 'import { run } from "../cli/serve.ts";',
  },
  "cli.ts -> app/gateway.ts (only serve starts the gateway)": {
    "cli.ts": 'import { start } from "./app/gateway.ts";',
  },
  "wire/a.ts -> wire/b.ts -> wire/a.ts (a circle)": {
    "wire/a.ts": 'import type { B } from "./b.ts";',
    "wire/b.ts": 'import { a } from "./a.ts";',
  },
};

test("finds each import against the arrows", async (t) => {
  const found = await check(t, Object.assign({}, ...Object.values(broken)));
  assert.deepEqual(
    Object.keys(broken).filter((finding) => !found.includes(finding)),
    [],
  );
});

/** The findings of the script for a `src` folder with these files. */
async function check(t: TestContext, files: Readonly<Record<string, string>>): Promise<string[]> {
  const root = directory(t);
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, "src", path)), { recursive: true });
    await writeFile(join(root, "src", path), text);
  }
  const { code, err } = await runScript("arrows.ts", [root]);
  const findings = err.split("\n").filter((line) => line.includes(" -> "));
  // `npm run check` relies on the exit code.
  assert.equal(code, findings.length > 0 ? 1 : 0);
  return findings;
}
