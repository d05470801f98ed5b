import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { defects } from "./defects.ts";
import { runMany } from "./many.ts";
import { runSeed } from "./run.ts";

const [defect] = defects as [(typeof defects)[0]];

describe("many histories, made by processes of their own", () => {
  test("are the same as those of one process, each made once", async () => {
    const alone = { calls: 0, shown: 0, virtualMs: 0 };
    for (let seed = 7; seed < 31; seed++) {
      const { history } = await runSeed(seed);
      alone.calls += history.calls.length;
      alone.shown += history.shown.length;
      alone.virtualMs += history.endedMs;
    }
    const { figures, broken, nextSeed } = await runMany({
      ...{ first: 7, histories: 24, store: "memory", jobs: 2 },
    });
    assert.deepEqual(broken, []);
    const { histories, calls, shown, virtualMs } = figures;
    const { virtualMs: aloneMs, ...counted } = alone;
    assert.deepEqual(
      { histories, calls, shown, nextSeed },
      { histories: 24, ...counted, nextSeed: 31 },
    );
    // Rounded, since the sum is added up in another order.
    assert.equal(virtualMs.toFixed(3), aloneMs.toFixed(3));
  });

  test("fail when their processes cannot begin", async () => {
    const store = "memory";
    const begun = runMany({ first: 1, histories: 40, store, jobs: 1, defect: "none of them" });
    await assert.rejects(begun, /a process of the simulation did not begin: exit code 1/);
  });

  test("are not made when they were aborted before", async () => {
    const { figures } = await runMany({
      ...{ first: 1, histories: 40, store: "memory", signal: AbortSignal.abort() },
    });
    assert.equal(figures.histories, 0);
  });

  test("report the seeds that were not tried when their process stands still", async () => {
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
});

describe("npm run simulate", () => {
  test("prints the totals", async () => {
    const { child, said } = simulate("--histories", "10", "--jobs", "1");
    assert.deepEqual(await once(child, "exit"), [0, null]);
    assert.match(await said, /^10 histories on memory in .* calls a second\): .* 0 broken$/m);
    assert.match(await said, /^\| \| never answered \| calls \| [1-9]\d+ \| 0 \|/m);
  });

  test("exits with 1 when a promise is broken, and draws the history of that seed", async () => {
    const asked = ["--histories", "20", "--jobs", "1", "--defect", defect.name, "--print"];
    const { child, said } = simulate(...asked);
    assert.deepEqual(await once(child, "exit"), [1, null]);
    const [, seed] = /^broken: sent while another is open: seeds (\d+)/m.exec(await said) ?? [];
    assert.match(await said, new RegExp(`^seed ${seed}: sent while another is open: request`, "m"));
    assert.match(await said, /^ +ms {2}callers .*gateway-0/m);
  });

  test("exits on SIGINT, and prints which seeds were tried", async () => {
    const { child, said } = simulate("--histories", "1000000", "--jobs", "1");
    // Wait until it has begun.
    await once(child.stdout, "data");
    child.kill("SIGINT");
    assert.deepEqual(await once(child, "exit"), [130, null]);
    assert.match(await said, /^\d+ histories on memory in .*\nall seeds before \d+ were tried$/m);
  });

  test("refuses an option's value", async () => {
    const { child, refusal } = simulate("--jobs", "1.5");
    assert.deepEqual(await once(child, "exit"), [1, null]);
    assert.match(await refusal, /Error: --jobs 1.5: not a whole number/);
  });
});

function simulate(...args: string[]) {
  const child = spawn(process.execPath, [main, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  return {
    child: child satisfies ChildProcess,
    said: text(child.stdout),
    refusal: text(child.stderr),
  };
}

const main = fileURLToPath(new URL("main.ts", import.meta.url));
