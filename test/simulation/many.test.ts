import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { defects } from "./defects.ts";
import { runMany } from "./many.ts";

const [defect] = defects as [(typeof defects)[0]];

const main = fileURLToPath(new URL("main.ts", import.meta.url));

test("seeds that were not tried are reported when their process stands still", async () => {
  const workers: ChildProcess[] = [];
  const { figures, broken, nextSeed } = await runMany({
    ...{ first: 1, histories: 1_000, store: "memory", jobs: 1, silentMs: 2_000 },
    onProcess: (worker) => workers.push(worker),
    onFigures: () => workers[0]?.kill("SIGSTOP"),
  });
  assert.equal(nextSeed, figures.histories + 1);
  assert.deepEqual(
    broken.map(({ seed, violations }) => [seed, violations.map(({ check }) => check)]),
    [[nextSeed, ["the simulation does not end"]]],
  );
  assert.match(broken[0]?.violations[0]?.found ?? "", /^seeds \d+ to \d+: SIGKILL$/);
});

test("npm run simulate exits with 1 when a promise is broken, and draws the history of that seed", async () => {
  const args = ["--histories", "20", "--jobs", "1", "--defect", defect.name, "--print"];
  const child = spawn(process.execPath, [main, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  const [said, exit] = await Promise.all([text(child.stdout), once(child, "exit")]);
  assert.deepEqual(exit, [1, null]);
  const [, seed] = /^broken: sent while another is open: seeds (\d+)/m.exec(said) ?? [];
  assert.match(said, new RegExp(`^seed ${seed}: sent while another is open: request`, "m"));
  assert.match(said, /^ +ms {2}callers .*gateway-0/m);
});
