/**
 * Runs test files in parallel, together with the static checks. Short files of a folder share a
 * process, since they spend most of their time loading the same modules; other files have one each.
 *
 *   node scripts/run-tests.ts [--checks] [--floor <tests>] [--at-once <n>] [--file-limit <seconds>]
 *                             [--run-limit <seconds>] [--record] [--together <folder>]
 *                             [file, folder or glob ...]
 *
 * Without files it runs those of `test` and of the packages `devtools` and `sandbox`.
 *
 * scripts/test-seconds.json has the seconds and the processor seconds that each file takes;
 * `--record` updates it from this run. The longest process starts first, if the running ones leave
 * enough processor time: files that mostly wait run beside files that compute.
 *
 * A file fails when a test fails, when its process ends without the reporter's summary (a call of
 * `process.exit`), or when it does not end by itself within the limit: then its process group is
 * killed. No file is retried. The last line says how many tests passed, failed and were skipped.
 *
 * Tests whose program is missing skip with the reason `needs <program>: apt-get install <package>`.
 * Such a run may pass, whatever `--floor` says, and its end names the programs. With CI set it
 * fails.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, globSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { availableParallelism, constants, setPriority } from "node:os";
import { join, relative, resolve, sep } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";

const testFolders = ["test", "devtools/test", "sandbox/test"];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    checks: { type: "boolean", default: false },
    floor: { type: "string", default: "0" },
    record: { type: "boolean", default: false },
    together: { type: "string", multiple: true, default: testFolders },
    "at-once": { type: "string", default: String(4 * availableParallelism()) },
    "file-limit": { type: "string", default: "300" },
    "run-limit": { type: "string", default: "1200" },
  },
});
const floor = Number(values.floor);
const atOnce = Number(values["at-once"]);
const fileLimitMs = Number(values["file-limit"]) * 1_000;
const runLimitMs = Number(values["run-limit"]) * 1_000;

/**
 * Files that compute and measure no time. They start first and take what others leave of the
 * processors, so that no processor waits while other files do.
 */
const background = [/^test\/(exploration\/exploration|simulation\/(many|simulation))\.test\.ts$/];

/** Files that need a process of their own: they measure it, inspect what it has loaded, or own its time. */
const alone = [
  ...background,
  /^test\/(simulation\/redis|collections\/under-way|hardening\/heap|telemetry\/tracing\/tracing)\.test\.ts$/,
];

/**
 * A larger young generation, in MB, so that V8 collects it less often: saves up to an eighth of the
 * processor time. The files in `alone` run without it, except in the background.
 */
const heapOptions = ["--min-semi-space-size=32", "--max-semi-space-size=32"];

const besideThis = (file: string) => new URL(file, import.meta.url).pathname;
const testOptions = ["--import", besideThis("untracked-tests.ts")];
const testTimeoutMs = 120_000;
/** In the background. */
const longTimeoutMs = 600_000;

/** Files that open pages: they share one process, which starts one Chromium. */
const browsing = [
  /^test\/console\/(?!api)/,
  /^test\/(examples\/browser|gateway\/event-source|graphql\/graphiql)\.test\.ts$/,
  /^sandbox\/test\/demo\//,
];

interface Times {
  readonly seconds: number;
  /** Processor time, including that of child processes. */
  readonly cpuSeconds: number;
}

const timesFile = new URL("test-seconds.json", import.meta.url);
const timesOfFiles = new Map(
  Object.entries<[number, number]>(JSON.parse(readFileSync(timesFile, "utf8"))).map(
    ([file, [seconds, cpuSeconds]]) => [file, { seconds, cpuSeconds }],
  ),
);
/** Assumed for files that are not recorded because they take less than a second. */
const shortTimes: Times = { seconds: 0.5, cpuSeconds: 0.3 };
/** A file that takes at least this long has its own process. */
const longSeconds = 35;
/** Other files share processes that take about this long. */
const sharedSeconds = 60;

/** Processors that running jobs may use together: more makes Redis answer too late for its tests. */
const processors = availableParallelism();

/** The work of one process. */
interface Job {
  readonly name: string;
  readonly args: readonly string[];
  /** Its test files, whose output has the number of tests; empty for a check. */
  readonly files: readonly string[];
  /** Expected duration, and the number of processors it uses meanwhile: 0 in the background. */
  readonly seconds: number;
  readonly processors: number;
}

/** How one process ended. */
interface Outcome extends Times {
  readonly name: string;
  readonly files: readonly string[];
  readonly passed: number;
  readonly failed: number;
  readonly skipped: readonly string[];
  /** Why the job failed; undefined if it did not. */
  readonly failure: string | undefined;
  readonly output: string;
}

/** Environment of all jobs: the cache of compiled code, and `dist/` if the checks built it. */
const ofRun = {
  NODE_COMPILE_CACHE: resolve("node_modules/.cache/compiled"),
  ...(values.checks ? { BUILT_COMMAND_LINE: resolve("dist/cli.js") } : {}),
};

const needed = /needs (\S+): apt-get install (\S+?)(?=;|$)/g;

const startMs = performance.now();
const running = new Map<string, ChildProcess>();
const outcomes: Outcome[] = [];
let stopped: string | undefined;
let cpuSecondsSoFar = 0;

const runTimer = setTimeout(
  () => stopAll(`the run did not end within ${runLimitMs / 1_000} s`),
  runLimitMs,
);
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => stopAll(`the run was stopped by ${signal}`));
}

const patterns = (positionals.length > 0 ? positionals : testFolders).map(testsOf);
const files = globSync(patterns, { exclude: ["**/node_modules/**"] }).sort();
const left = new Set(files);
/** Removes the matching files from `left` and returns them. */
const taken = (matches: (file: string) => boolean) => {
  const found = [...left].filter(matches);
  for (const file of found) left.delete(file);
  return found;
};
const oneOf = (patterns: readonly RegExp[]) => (file: string) =>
  patterns.some((pattern) => pattern.test(file));
/** Files that share a process with others: those that mock time apart from those that do not. */
const sharing = (mocks: boolean) =>
  shared(taken((file) => mayShare(file) && mocksTime(file) === mocks));
const jobs = [taken(oneOf(browsing)), ...taken(oneOf(alone)).map((file) => [file])]
  .concat(sharing(true), sharing(false))
  .concat([...left].map((file) => [file]))
  .filter(({ length }) => length > 0)
  .map(testJob);
if (values.checks) {
  // Writes files that the tests load, so it runs alone.
  await runAll([checkJob("generated")]);
  jobs.push(checkJob("static"));
}
const isFirst = ({ processors }: Job) => Number(processors === 0);
jobs.sort((a, b) => isFirst(b) - isFirst(a) || b.seconds - a.seconds);
await runAll(jobs);
clearTimeout(runTimer);
if (values.record) record();
report();

/** A folder becomes a glob of all tests below it. */
function testsOf(path: string): string {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory()
    ? join(path, "**/*.test.ts")
    : path;
}

/** The file's folder within a `--together`; undefined outside of them: the file shares no process. */
function folderOf(file: string): string | undefined {
  const root = values.together.find((folder) => !relative(folder, file).startsWith(".."));
  if (root === undefined) return undefined;
  const [folder = "", ...more] = relative(root, file).split(sep);
  return more.length > 0 ? join(root, folder) : root;
}

function mayShare(file: string): boolean {
  return folderOf(file) !== undefined && timesOf([file]).seconds < longSeconds;
}

/**
 * Mocked timers and clocks are those of the whole process: what another file has started there, such
 * as a gateway for all of its tests, would set timers that never fire.
 */
function mocksTime(file: string): boolean {
  const mocks = /\bmock\.(timers\.enable\(|method\((performance|globalThis|Date),)/;
  return mocks.test(readFileSync(file, "utf8"));
}

/** Groups files into processes: files of a folder together, and small folders with each other. */
function shared(several: readonly string[]): string[][] {
  const folders = Map.groupBy(several, folderOf).values();
  const large: string[][] = [];
  let small: string[] = [];
  for (const folder of folders) {
    const parts = Math.max(1, Math.round(timesOf(folder).seconds / sharedSeconds));
    if (timesOf(folder).seconds > sharedSeconds / 3) {
      large.push(...evenly(folder, parts));
    } else {
      small.push(...folder);
      if (timesOf(small).seconds < sharedSeconds / 2) continue;
      large.push(small);
      small = [];
    }
  }
  return [...large, small];
}

/** Splits files into `parts` groups of about equal duration. */
function evenly(several: readonly string[], parts: number): string[][] {
  const shares = Array.from({ length: parts }, () => [] as string[]);
  const longestFirst = several.toSorted((a, b) => timesOf([b]).seconds - timesOf([a]).seconds);
  for (const file of longestFirst) {
    const [least] = shares.toSorted((a, b) => timesOf(a).seconds - timesOf(b).seconds);
    least?.push(file);
  }
  return shares.map((share) => share.sort());
}

function timesOf(several: readonly string[]): Times {
  const times = several.map((file) => timesOfFiles.get(file) ?? shortTimes);
  return {
    seconds: times.reduce((sum, { seconds }) => sum + seconds, 0),
    cpuSeconds: times.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0),
  };
}

function testJob(several: readonly string[]): Job {
  const [file = "", ...more] = several;
  const { seconds, cpuSeconds } = timesOf(several);
  const isBackground = oneOf(background)(file);
  const times = { files: several, seconds, processors: isBackground ? 0 : cpuSeconds / seconds };
  const timeout = `--test-timeout=${isBackground ? longTimeoutMs : testTimeoutMs}`;
  const usualHeap = oneOf(alone)(file) && !isBackground;
  const options = [...(usualHeap ? [] : heapOptions), ...testOptions, timeout];
  if (more.length === 0) {
    return { ...times, name: file, args: [...options, "--test-reporter=spec", file] };
  }
  const folders = [...new Set(several.map(folderOf))];
  const name = `${several.length} files of ${folders.join(", ")}, from ${file}`;
  return { ...times, name, args: [...options, besideThis("test-files.ts"), ...several] };
}

function checkJob(half: "generated" | "static"): Job {
  const args = ["scripts/check.ts", half];
  const processors = half === "static" ? 0 : 1;
  return { name: `checks: ${half}`, args, files: [], seconds: 20, processors };
}

/** Runs the jobs in this order, except that one waits while it needs more processors than free. */
async function runAll(jobs: readonly Job[]): Promise<void> {
  const left = [...jobs];
  const begun = new Map<Job, Promise<void>>();
  while (begun.size > 0 || (left.length > 0 && stopped === undefined)) {
    const wanted = [...begun.keys()].reduce((sum, job) => sum + job.processors, 0);
    const next = left.findIndex((job) => begun.size === 0 || wanted + job.processors <= processors);
    if (next >= 0 && begun.size < atOnce && stopped === undefined) {
      const [job] = left.splice(next, 1) as [Job];
      const run = runOne(job).then((outcome) => {
        begun.delete(job);
        told(outcome);
      });
      begun.set(job, run);
    } else {
      await Promise.race(begun.values());
    }
  }
}

function told(outcome: Outcome): void {
  outcomes.push(outcome);
  const { name, files, passed, failure } = outcome;
  const verdict = failure === undefined ? "ok" : `FAILED, ${failure}`;
  console.log(
    `${name}: ${files.length > 0 ? `${passed} passed, ` : ""}${shown(outcome)}, ${verdict}`,
  );
}

/** Runs a job as the leader of a new process group, until it ends or its time limit is reached. */
async function runOne({ name, args, files, processors }: Job): Promise<Outcome> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const beganMs = performance.now();
  const child = spawn(process.execPath, args, {
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...ofRun, ...env },
  });
  running.set(name, child);
  if (processors === 0) yieldProcessors(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  let late = false;
  const limitMs = files.length > 1 || processors === 0 ? 2 * fileLimitMs : fileLimitMs;
  const timer = setTimeout(() => {
    late = true;
    killGroup(child);
  }, limitMs);
  const closed = new Promise((resolve) => child.once("close", resolve));
  let cpuSeconds = 0;
  const end = await new Promise<string>((done) => {
    child.once("error", ({ message }) => done(message));
    child.once("exit", (code, signal) => {
      cpuSeconds = childrenCpuSeconds() - cpuSecondsSoFar;
      cpuSecondsSoFar += cpuSeconds;
      done(signal ?? String(code));
    });
  });
  clearTimeout(timer);
  running.delete(name);
  // Children that the process left behind may hold the pipes open: kill them, and wait only 1 s.
  signalGroup(child, "SIGKILL");
  await Promise.race([closed, delay(1_000, undefined, { ref: false })]);
  child.stdout.destroy();
  child.stderr.destroy();

  const counts = new Map(
    [...output.matchAll(/^ℹ (tests|pass|fail|cancelled|skipped|todo) (\d+)$/gm)].map((match) => [
      match[1],
      Number(match[2]),
    ]),
  );
  // A skipped group is in the output, but its tests are in no count.
  const skipped = [...output.matchAll(/^\s*﹣ (.*)$/gm)].map((match) => `${name}: ${match[1]}`);
  const failed = (counts.get("fail") ?? 0) + (counts.get("cancelled") ?? 0);
  const failure = () => {
    if (stopped !== undefined) return stopped;
    if (late) return `its process did not end by itself within ${limitMs / 1_000} s`;
    if (failed > 0) return `${failed} failed`;
    if (end !== "0") return `ended with ${end}`;
    if (files.length > 0 && !counts.has("tests"))
      return "its process ended before its tests were over";
    if (files.length > 0 && counts.get("tests") === 0 && skipped.length === 0)
      return "has no tests";
    return undefined;
  };
  return {
    name,
    files,
    seconds: (performance.now() - beganMs) / 1_000,
    cpuSeconds,
    passed: counts.get("pass") ?? 0,
    failed,
    skipped,
    failure: failure(),
    output,
  };
}

/** Lets all other processes go before this one and its children. */
function yieldProcessors({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  const { PRIORITY_LOW } = constants.priority;
  setPriority(pid, PRIORITY_LOW);
  // Linux may weigh sessions before processes; it may refuse two changes at once.
  try {
    writeFileSync(`/proc/${pid}/autogroup`, `${PRIORITY_LOW}`, { flag: "r+" });
  } catch {}
}

/** Processor seconds of all ended children, from /proc, in steps of 0.01 s; 0 except on Linux. */
function childrenCpuSeconds(): number {
  if (process.platform !== "linux") return 0;
  const fields = readFileSync("/proc/self/stat", "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return (Number(fields[13]) + Number(fields[14])) / 100;
}

function shown({ seconds, cpuSeconds }: Times): string {
  return `${seconds.toFixed(1)} s (${cpuSeconds.toFixed(1)} s of CPU)`;
}

/** Sends SIGTERM, so that a process can end its children and report; kills the group 3 s later. */
function killGroup(child: ChildProcess): void {
  signalGroup(child, "SIGTERM");
  setTimeout(() => signalGroup(child, "SIGKILL"), 3_000).unref();
}

function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

function stopAll(why: string): void {
  stopped ??= why;
  for (const child of running.values()) killGroup(child);
}

/**
 * Stores the times of this run. The time of a shared process is divided among its files in
 * proportion to their earlier times. Files that no longer exist are removed.
 */
function record(): void {
  const share = (now: number, before: number) => (before > 0 ? now / before : 1);
  for (const { files, ...times } of outcomes) {
    const before = timesOf(files);
    for (const file of files) {
      const { seconds, cpuSeconds } = timesOf([file]);
      timesOfFiles.set(file, {
        seconds: seconds * share(times.seconds, before.seconds),
        cpuSeconds: cpuSeconds * share(times.cpuSeconds, before.cpuSeconds),
      });
    }
  }
  const lines = [...timesOfFiles]
    .filter(([file, { seconds }]) => existsSync(file) && seconds >= 1)
    .toSorted(([, a], [, b]) => b.seconds - a.seconds)
    .map(
      ([file, times]) =>
        `${JSON.stringify(file)}: [${times.seconds.toFixed(1)}, ${times.cpuSeconds.toFixed(1)}]`,
    );
  writeFileSync(timesFile, `{\n  ${lines.join(",\n  ")}\n}\n`);
}

function report(): void {
  const failures = outcomes.filter(({ failure }) => failure !== undefined);
  for (const { name, output } of failures) console.log(`\n──── ${name}\n${output.trimEnd()}`);

  const skipped = outcomes.flatMap((outcome) => outcome.skipped);
  if (skipped.length > 0) console.log(`\nskipped:\n${skipped.map((one) => `  ${one}`).join("\n")}`);

  const slowest = outcomes.toSorted((a, b) => b.seconds - a.seconds).slice(0, 10);
  console.log("\nslowest:");
  for (const outcome of slowest) console.log(`  ${shown(outcome)}  ${outcome.name}`);

  const sum = (of: (outcome: Outcome) => number) =>
    outcomes.reduce((total, outcome) => total + of(outcome), 0);
  const passed = sum((outcome) => outcome.passed);
  const problems = failures.map(({ name, failure }) => `${name}: ${failure}`);
  if (stopped !== undefined) {
    const begun = new Set(outcomes.flatMap((outcome) => outcome.files));
    problems.push(stopped, `${files.filter((f) => !begun.has(f)).length} files were not begun`);
  }
  const missing = missingPrograms(skipped);
  if (missing.size === 0 && passed < floor) {
    problems.push(`only ${passed} tests passed, at least ${floor} must`);
  }
  if (process.env.CI && missing.size > 0) problems.push("in CI no program may be missing");
  if (files.length === 0) problems.push("no test files");
  if (problems.length > 0) {
    console.log(`\nfailed:\n${problems.map((one) => `  ${one}`).join("\n")}`);
    process.exitCode = 1;
  }
  console.log(
    `\n${files.length} files in ${((performance.now() - startMs) / 1_000).toFixed(0)} s, ${cpuSecondsSoFar.toFixed(0)} s of CPU`,
  );
  if (missing.size > 0) {
    console.log("\nnot everything was tested, because programs are missing:");
    for (const [program, tests] of missing) {
      console.log(`  ${program}: ${tests.length} tests or groups of tests were skipped`);
    }
    const packages = [...missing.values()].map(([first]) => first?.install);
    console.log(`install them: apt-get install ${packages.join(" ")}`);
  }
  // A file or check that failed without a failed test counts as one failure.
  const failed = sum(({ failure, failed }) => (failure === undefined ? 0 : Math.max(1, failed)));
  console.log(`${passed} passed, ${failed} failed, ${skipped.length} skipped`);
}

/** The programs that skipped tests need, each with a member for each of these tests. */
function missingPrograms(skipped: readonly string[]) {
  const needs = skipped
    .flatMap((test) => [...test.matchAll(needed)])
    .map(([, program = "", install = ""]) => ({ program, install }));
  return Map.groupBy(needs, ({ program }) => program);
}
