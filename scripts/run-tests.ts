/**
 * Runs test files side by side, each in a process of its own, and the static checks beside them.
 *
 *   node scripts/run-tests.ts [--checks] [--floor <tests>] [--at-once <n>] [--file-limit <seconds>]
 *                             [--run-limit <seconds>] [file or glob ...]
 *
 * A file fails when a test fails, when its process ends without the reporter's summary (somebody
 * called `process.exit`), or when it does not end by itself within the limit: then its process group
 * is killed. Nothing is tried twice. The last line says how many tests passed, failed and skipped.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    checks: { type: "boolean", default: false },
    floor: { type: "string", default: "0" },
    "at-once": { type: "string", default: String(availableParallelism() + 2) },
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
  /^test\/ratelimit\/redis\/(bucket|load)\.test\.ts$/,
];

/** The longest of the others. They start first, so that none of them is left over at the end. */
const longest = [
  /^test\/hardening\/(replays|attacks)\.test\.ts$/,
  /^test\/gateway\/(slow-readers|rolling-restart|data-dir|money-\w+|event-source)\.test\.ts$/,
  /^test\/events\//,
  /^test\/gateway\//,
  /^test\/console\//,
];

/** What one process is to do. */
interface Job {
  readonly name: string;
  readonly args: readonly string[];
  /** Whether it runs tests, and so must say how many. */
  readonly tests: boolean;
}

/** How one process ended. */
interface Outcome {
  readonly name: string;
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

const files = globSync(positionals.length > 0 ? positionals : ["test/**/*.test.ts"]).sort(
  (a, b) => rank(a) - rank(b) || (a < b ? -1 : 1),
);
const isCalm = (file: string) => calm.some((pattern) => pattern.test(file));
const beside = files.filter((file) => !isCalm(file)).map(testJob);
if (values.checks) {
  // Writes files that the tests load, so nothing runs beside it.
  await runAll([checkJob("generated")], 1);
  beside.unshift(checkJob("static"));
}
await runAll(beside, atOnce);
await runAll(files.filter(isCalm).map(testJob), Math.min(2, atOnce));
clearTimeout(runTimer);
report();

function rank(file: string): number {
  const place = longest.findIndex((pattern) => pattern.test(file));
  return place < 0 ? longest.length : place;
}

function testJob(file: string): Job {
  const reporter = ["--test-reporter=spec", "--test-timeout=120000"];
  return { name: file, args: [...reporter, file], tests: true };
}

function checkJob(half: "generated" | "static"): Job {
  return { name: `checks: ${half}`, args: ["scripts/check.ts", half], tests: false };
}

async function runAll(jobs: readonly Job[], width: number): Promise<void> {
  const waiting = [...jobs];
  const worker = async () => {
    for (let job = waiting.shift(); job && stopped === undefined; job = waiting.shift()) {
      const outcome = await runOne(job);
      outcomes.push(outcome);
      const { passed, failure } = outcome;
      const verdict = failure === undefined ? "ok" : `FAILED, ${failure}`;
      const count = job.tests ? `${passed} passed, ` : "";
      console.log(`${job.name}: ${count}${timesOf(outcome)}, ${verdict}`);
    }
  };
  await Promise.all(Array.from({ length: width }, worker));
}

/** Runs one process, the leader of a process group of its own, until it ends or its time is up. */
async function runOne({ name, args, tests }: Job): Promise<Outcome> {
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
  const timer = setTimeout(() => {
    late = true;
    killGroup(child);
  }, fileLimitMs);
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
    if (late) return `its process did not end by itself within ${fileLimitMs / 1_000} s`;
    if (failed > 0) return `${failed} failed`;
    if (end !== "0") return `ended with ${end}`;
    if (tests && !counts.has("tests")) return "its process ended before its tests were over";
    if (tests && counts.get("tests") === 0) return "has no tests";
    return undefined;
  };
  return {
    name,
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
    const begun = new Set(outcomes.map(({ name }) => name));
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
