import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { defects } from "./defects.ts";

const [defect] = defects as [(typeof defects)[0]];

const main = fileURLToPath(new URL("main.ts", import.meta.url));

test("npm run simulate exits with 1 when a promise is broken, and draws the history of that seed", async () => {
  const args = ["--histories", "20", "--jobs", "1", "--defect", defect.name, "--print"];
  const child = spawn(process.execPath, [main, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  const [said, exit] = await Promise.all([text(child.stdout), once(child, "exit")]);
  assert.deepEqual(exit, [1, null]);
  const [, seed] = /^broken: sent while another is open: seeds (\d+)/m.exec(said) ?? [];
  assert.match(said, new RegExp(`^seed ${seed}: sent while another is open: request`, "m"));
  assert.match(said, /^ +ms {2}callers .*gateway-0/m);
});
