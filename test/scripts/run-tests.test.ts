import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { directory } from "../stores/sqlite/directories.ts";
import { until } from "../until.ts";
import { runScript } from "./script.ts";

const passes = 'import { test } from "node:test"; test("adds", () => {});';

const throws = 'import { test } from "node:test"; test("x", () => { throw Error("why not"); });';

const leavesOver = `
  import { spawn } from "node:child_process";
  import { writeFileSync } from "node:fs";
  import { test } from "node:test";
  test("starts a process", () => {
    const { pid } = spawn("sleep", ["600"], { stdio: "inherit" });
    writeFileSync(new URL("pid", import.meta.url), String(pid));
    process.on("SIGTERM", () => {});
  });`;
const inTest = (body: string) => `import { test } from "node:test"; test("x", () => { ${body} });`;

/** Files that fail, and why. */
const failing: [name: string, source: string, why: string][] = [
  ["throws", throws, "1 failed"],
  ["rejects", inTest('Promise.reject(Error("unheard"))'), "ended with 1"],
  ["throws-later", inTest('setTimeout(() => { throw Error("late"); })'), "ended with 1"],
  ["exits", inTest("process.exit(0)"), "its process ended before its tests were over"],
  ["none", 'import { describe } from "node:test"; describe("x", () => {});', "has no tests"],
  ["leaves-over", leavesOver, "its process did not end by itself within 20 s"],
];

test("runs all tests below a folder, and says of each file that fails why", async (t) => {
  const dir = directory(t);
  await mkdir(join(dir, "room/part"), { recursive: true });
  const { code, lines } = await runIn(
    dir,
    {
      "room/one.test.ts": passes,
      "room/part/two.test.ts": `${passes} test("waits", { skip: "for rain" }, () => {});`,
      ...Object.fromEntries(failing.map(([name, source]) => [`room/${name}.test.ts`, source])),
      "room/rig.ts": "?",
    },
    ...["--file-limit=20", join(dir, "room")],
  );
  for (const [name, , why] of failing) {
    assert.ok(lines.includes(`  ${dir}/room/${name}.test.ts: ${why}`), `${name}: ${why}`);
  }
  for (const error of ["why not", "unheard", "late"]) {
    assert.ok(
      lines.some((line) => line.includes(`Error: ${error}`)),
      error,
    );
  }
  assert.ok(lines.some((line) => /^ {2}\S+two\.test\.ts: waits .*for rain/.test(line)));
  // Three of the files that fail have a test that passed.
  assert.equal(lines.at(-1), `5 passed, ${failing.length} failed, 1 skipped`);
  assert.equal(code, 1);
  const pid = Number(await readFile(join(dir, "room/pid"), "utf8"));
  await until(async () => !(await isRunning(pid)), "its child processes are killed");
});

test("passes without programs that tests need, below --floor, and says how to install them", async (t) => {
  const needs = (...programs: string[]) =>
    JSON.stringify(programs.map((one) => `needs ${one}: apt-get install ${one}-bin`).join("; "));
  const files = {
    "one.test.ts": passes,
    "group.test.ts": `import { describe, it } from "node:test";
      describe("on x", { skip: ${needs("x")} }, () => { it("runs", () => {}); });`,
    "test.test.ts": `import { test } from "node:test";
      test("on both", { skip: ${needs("x", "y")} }, () => {});
      test("in calm weather", { skip: "for rain" }, () => {});`,
  };
  const { code, lines } = await run(t, files, "--floor=2");
  assert.deepEqual(lines.slice(-5), [
    "not everything was tested, because programs are missing:",
    "  x: 2 tests or groups of tests were skipped",
    "  y: 1 tests or groups of tests were skipped",
    "install them: apt-get install x-bin y-bin",
    "1 passed, 0 failed, 3 skipped",
  ]);
  assert.equal(code, 0);

  const inCi = await run(t, files, "CI=true");
  assert.ok(inCi.lines.includes("  in CI no program may be missing"));
  assert.equal(inCi.code, 1);
  const control = await run(t, { "one.test.ts": passes }, "--floor=2");
  assert.ok(control.lines.includes("  only 1 tests passed, at least 2 must"));
  assert.equal(control.code, 1);
});

test("fails a run without files", async (t) => {
  assert.equal((await run(t, {})).code, 1);
});

test("ends the whole run at --run-limit, and reports it", async (t) => {
  const { code, lines } = await run(
    t,
    {
      "hangs.test.ts": `${passes} setInterval(() => {}, 1_000);`,
      "never-begun.test.ts": passes,
    },
    "--run-limit=10",
    "--at-once=1",
  );
  assert.equal(lines.at(-1), "0 passed, 1 failed, 0 skipped");
  assert.ok(lines.includes("  the run did not end within 10 s"));
  assert.ok(lines.includes("  1 files were not begun"));
  assert.equal(code, 1);
});

test("short files of a --together folder share a process, and each test counts", async (t) => {
  const tellsPid = `
    import { appendFileSync } from "node:fs";
    import { test } from "node:test";
    test("tells", () => appendFileSync(new URL("pids", import.meta.url), process.pid + "\\n"));`;
  const pidsOf = async (dir: string) =>
    new Set((await readFile(join(dir, "pids"), "utf8")).trimEnd().split("\n")).size;

  const files = { "one.test.ts": tellsPid, "two.test.ts": tellsPid };
  const alone = await run(t, files);
  assert.equal(await pidsOf(alone.dir), 2);

  const dir = directory(t);
  const together = await runIn(dir, { ...files, "bad.test.ts": throws }, `--together=${dir}`);
  assert.equal(await pidsOf(dir), 1);
  assert.equal(together.lines.at(-1), "2 passed, 1 failed, 0 skipped");
  assert.ok(together.lines.some((line) => line.includes("why not")));
  assert.equal(together.code, 1);
});

/** Runs these files in a directory of their own. */
async function run(t: TestContext, files: Record<string, string>, ...options: string[]) {
  return runIn(directory(t), files, ...options);
}

/** Runs the files. The option `CI=true` is of the environment, which is not that of CI without it. */
async function runIn(dir: string, files: Record<string, string>, ...options: string[]) {
  for (const [name, source] of Object.entries(files)) await writeFile(join(dir, name), source);
  const args = options.filter((option) => !option.startsWith("CI="));
  const CI = options.length > args.length ? "true" : "";
  const all = [...args, `${dir}/*.test.ts`];
  const { code, out } = await runScript("run-tests.ts", all, { env: { CI } });
  return { code, lines: out.trimEnd().split("\n"), dir };
}

/** Whether the process runs. A zombie does not count: some containers never remove them. */
async function isRunning(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return stat !== "" && !/\) Z /.test(stat);
}
