/**
 * Runs test files side by side, each in a process of its own, and the static checks beside them. Short
 * files of some folders share a process, since most of what they take is to load the same modules.
 *
 *   node scripts/run-tests.ts [--checks] [--floor <tests>] [--at-once <n>] [--file-limit <seconds>]
 *                             [--run-limit <seconds>] [--record] [--together <folders>]
 *                             [file or glob ...]
 *
 * The longest files start first: scripts/test-seconds.json has their times, and `--record` writes
 * down those of this run. At least one more than there are processors run at once, and more, up to
 * `--at-once`, while the processors have time: many files mostly wait.
 *
 * A file fails when a test fails, when its process ends without the reporter's summary (somebody
 * called `process.exit`), or when it does not end by itself within the limit: then its process group
 * is killed. Nothing is tried twice. The last line says how many tests passed, failed and skipped.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism, type CpuInfo, cpus } from "node:os";
import { dirname, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";

/** Folders whose short files share a process. */
const sharing = [
  ...["admin", "auth", "callbacks", "cli", "config", "core", "events", "gateway", "graphql"],
  ...["graphql/transport", "net", "rpc", "sandbox", "secrets", "telemetry", "upstream", "wire"],
];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    checks: { type: "boolean", default: false },
    floor: { type: "string", default: "0" },
    record: { type: "boolean", default: false },
    together: { type: "string", default: sharing.map((folder) => `test/${folder}`).join() },
    "at-once": { type: "string", default: String(3 * availableParallelism()) },
    "file-limit": { type: "string", default: "150" },
    "run-limit": { type: "string", default: "1200" },
  },
});
const floor = Number(values.floor);
const atOnce = Number(values["at-once"]);
const fileLimitMs = Number(values["file-limit"]) * 1_000;
const runLimitMs = Number(values["run-limit"]) * 1_000;

/**
 * Files whose load or budget a busy machine spoils: two at once, when the rest is over. Redis that
 * answers after 250 ms, for one, counts as away.
 */
const calm = [
  /^test\/gateway\/replicas\.test\.ts$/,
  /^test\/hardening\/overload\.test\.ts$/,
  /^test\/ratelimit\/redis\/bucket\.test\.ts$/,
];

/** Files that take long and do next to nothing meanwhile: they run beside the calm ones. */
const waiting = [
  /^test\/gateway\/(money-faults|deadline)\.test\.ts$/,
  /^test\/intents\/redis\/store\.test\.ts$/,
];

/** Seconds that the longer files take, of which the longest start first. */
const secondsFile = new URL("test-seconds.json", import.meta.url);
const secondsOf: Record<string, number> = JSON.parse(readFileSync(secondsFile, "utf8"));
/** What takes less is left out, and starts when the longer ones have begun. */
const shortSeconds = 4;
/** What takes this long has a process of its own, also in a folder whose files share one. */
const longSeconds = 10;

/** What one process is to do. */
interface Job {
  readonly name: string;
  readonly args: readonly string[];
  /** Its test files, which say how many tests they ran; none for a check. */
  readonly files: readonly string[];
}

/** How one process ended. */
interface Outcome {
  readonly name: string;
  readonly files: readonly string[];
  readonly seconds: number;
  /** Of processor time, its children's included. */
  readonly cpuSeconds: number;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: readonly string[];
  /** Why the file failed; undefined when it did not. */
  readonly failure: string | undefined;
  readonly output: string;
}

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

const files = globSync(positionals.length > 0 ? positionals : ["test/**/*.test.ts"]).sort();
const left = new Set(files);
/** Takes the files that match out of those that are left. */
const taken = (matches: (file: string) => boolean) => {
  const found = [...left].filter(matches);
  for (const file of found) left.delete(file);
  return found;
};
const oneOf = (patterns: readonly RegExp[]) => (file: string) =>
  patterns.some((pattern) => pattern.test(file));
const calmJobs = taken(oneOf(calm)).map((file) => testJob([file]));
const waitingJobs = taken(oneOf(waiting)).map((file) => testJob([file]));
const groups = values.together
  .split(",")
  .map((folder) =>
    taken((file) => dirname(file) === folder && (secondsOf[file] ?? 0) < longSeconds),
  );
const others = [...groups.filter(({ length }) => length > 0), ...[...left].map((file) => [file])]
  .toSorted((a, b) => secondsOfAll(b) - secondsOfAll(a))
  .map(testJob);
if (values.checks) {
  // Writes files that the tests load, so nothing runs beside it.
  await runAll([checkJob("generated")], 1);
  others.unshift(checkJob("static"));
}
await runAll(others, availableParallelism() + 1, atOnce);
await Promise.all([runAll(calmJobs, 2), runAll(waitingJobs, 2)]);
clearTimeout(runTimer);
if (values.record) record();
report();

function secondsOfAll(several: readonly string[]): number {
  return several.reduce((sum, file) => sum + (secondsOf[file] ?? 1), 0);
}

function testJob(several: readonly string[]): Job {
  const [file = "", ...more] = several;
  const reporter = ["--test-reporter=spec", "--test-timeout=120000"];
  if (more.length === 0) return { name: file, args: [...reporter, file], files: several };
  const name = `${several.length} files of ${dirname(file)}`;
  const args = ["--test", "--test-isolation=none", ...reporter, ...several];
  return { name, args, files: several };
}

function checkJob(half: "generated" | "static"): Job {
  return { name: `checks: ${half}`, args: ["scripts/check.ts", half], files: [] };
}

/** Runs them in order: `least` at once, and up to `most` while the processors have time. */
async function runAll(jobs: readonly Job[], least: number, most = least): Promise<void> {
  const left = [...jobs];
  const begun = new Set<Promise<void>>();
  const places = { least: Math.min(least, atOnce), most: Math.min(most, atOnce) };
  let idle = 0;
  while (begun.size > 0 || (left.length > 0 && stopped === undefined)) {
    const isFree = begun.size < (idle > 0.3 ? places.most : places.least);
    const job = isFree && stopped === undefined ? left.shift() : undefined;
    if (job) {
      const run = runOne(job).then((outcome) => {
        begun.delete(run);
        told(outcome);
      });
      begun.add(run);
      idle = 0;
    } else {
      const before = cpus();
      await Promise.race([...begun, delay(250, undefined, { ref: false })]);
      idle = idleSince(before);
    }
  }
}

function told(outcome: Outcome): void {
  outcomes.push(outcome);
  const { name, files, passed, failure } = outcome;
  const verdict = failure === undefined ? "ok" : `FAILED, ${failure}`;
  console.log(
    `${name}: ${files.length > 0 ? `${passed} passed, ` : ""}${timesOf(outcome)}, ${verdict}`,
  );
}

/**
 * The share of the processors' time that nobody has used since then; 0 after a moment too short, and
 * where this process may not use all of them.
 */
function idleSince(before: readonly CpuInfo[]): number {
  const sum = (all: readonly CpuInfo[], of: (times: CpuInfo["times"]) => number) =>
    all.reduce((total, { times }) => total + of(times), 0);
  const now = cpus();
  const passed = (of: (times: CpuInfo["times"]) => number) => sum(now, of) - sum(before, of);
  const allMs = passed(({ user, nice, sys, idle, irq }) => user + nice + sys + idle + irq);
  const isKnown = allMs >= 100 * now.length && now.length === availableParallelism();
  return isKnown ? passed(({ idle }) => idle) / allMs : 0;
}

/** Runs one process, the leader of a process group of its own, until it ends or its time is up. */
async function runOne({ name, args, files }: Job): Promise<Outcome> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const beganMs = performance.now();
  const child = spawn(process.execPath, args, {
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: { NODE_COMPILE_CACHE: resolve("node_modules/.cache/compiled"), ...env },
  });
  running.set(name, child);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  let late = false;
  const limitMs = files.length > 1 ? 2 * fileLimitMs : fileLimitMs;
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
  // What the process left behind may hold the pipes open: it is killed, and not waited for long.
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
  const failed = (counts.get("fail") ?? 0) + (counts.get("cancelled") ?? 0);
  const failure = () => {
    if (stopped !== undefined) return stopped;
    if (late) return `its process did not end by itself within ${limitMs / 1_000} s`;
    if (failed > 0) return `${failed} failed`;
    if (end !== "0") return `ended with ${end}`;
    if (files.length > 0 && !counts.has("tests"))
      return "its process ended before its tests were over";
    if (files.length > 0 && counts.get("tests") === 0) return "has no tests";
    return undefined;
  };
  return {
    name,
    files,
    seconds: (performance.now() - beganMs) / 1_000,
    cpuSeconds,
    passed: counts.get("pass") ?? 0,
    failed,
    skipped: [...output.matchAll(/^\s*﹣ (.*)$/gm)].map((match) => `${name}: ${match[1]}`),
    failure: failure(),
    output,
  };
}

/** Processor time of all children that have ended, as Linux counts it in hundredths of a second. */
function childrenCpuSeconds(): number {
  if (process.platform !== "linux") return 0;
  const fields = readFileSync("/proc/self/stat", "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return (Number(fields[13]) + Number(fields[14])) / 100;
}

function timesOf({ seconds, cpuSeconds }: Outcome): string {
  return `${seconds.toFixed(1)} s (${cpuSeconds.toFixed(1)} s of CPU)`;
}

/** Lets a process end its children and say what it was at, then ends the whole group. */
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

/** Takes over what the files of this run took; those that are gone are forgotten. */
function record(): void {
  for (const file of Object.keys(secondsOf)) if (!existsSync(file)) delete secondsOf[file];
  for (const { files, seconds } of outcomes) {
    const [file = "", ...more] = files;
    if (more.length > 0) continue;
    delete secondsOf[file];
    if (seconds >= shortSeconds) secondsOf[file] = Math.round(seconds);
  }
  const longestFirst = Object.entries(secondsOf).sort(([, a], [, b]) => b - a);
  writeFileSync(secondsFile, `${JSON.stringify(Object.fromEntries(longestFirst), null, 2)}\n`);
}

function report(): void {
  const failures = outcomes.filter(({ failure }) => failure !== undefined);
  for (const { name, output } of failures) console.log(`\n──── ${name}\n${output.trimEnd()}`);

  const skipped = outcomes.flatMap((outcome) => outcome.skipped);
  if (skipped.length > 0) console.log(`\nskipped:\n${skipped.map((one) => `  ${one}`).join("\n")}`);

  const slowest = outcomes.toSorted((a, b) => b.seconds - a.seconds).slice(0, 10);
  console.log("\nslowest:");
  for (const outcome of slowest) console.log(`  ${timesOf(outcome)}  ${outcome.name}`);

  const sum = (of: (outcome: Outcome) => number) =>
    outcomes.reduce((total, outcome) => total + of(outcome), 0);
  const passed = sum((outcome) => outcome.passed);
  const problems = failures.map(({ name, failure }) => `${name}: ${failure}`);
  if (stopped !== undefined) {
    const begun = new Set(outcomes.flatMap((outcome) => outcome.files));
    problems.push(stopped, `${files.filter((f) => !begun.has(f)).length} files were not begun`);
  }
  if (passed < floor) problems.push(`only ${passed} tests passed, at least ${floor} must`);
  if (files.length === 0) problems.push("no test files");
  if (problems.length > 0) {
    console.log(`\nfailed:\n${problems.map((one) => `  ${one}`).join("\n")}`);
    process.exitCode = 1;
  }
  console.log(
    `\n${files.length} files in ${((performance.now() - startMs) / 1_000).toFixed(0)} s, ${cpuSecondsSoFar.toFixed(0)} s of CPU`,
  );
  // A file or check that failed as a whole counts as one failure.
  const failed = sum(({ failure, failed }) => (failure === undefined ? 0 : Math.max(1, failed)));
  console.log(`${passed} passed, ${failed} failed, ${skipped.length} skipped`);
}
