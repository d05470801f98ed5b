/**
 * Runs test files side by side, and the static checks beside them. Short files of a folder share a
 * process, since most of what they take is to load the same modules; the others have one each.
 *
 *   node scripts/run-tests.ts [--checks] [--floor <tests>] [--at-once <n>] [--file-limit <seconds>]
 *                             [--run-limit <seconds>] [--record] [--together <folder>]
 *                             [file, folder or glob ...]
 *
 * scripts/test-seconds.json has the seconds and the processor seconds that files take, and `--record`
 * writes down those of this run. The longest process starts first, as long as those under way leave it
 * processor time: many files mostly wait, and run beside those that compute.
 *
 * A file fails when a test fails, when its process ends without the reporter's summary (somebody
 * called `process.exit`), or when it does not end by itself within the limit: then its process group
 * is killed. Nothing is tried twice. The last line says how many tests passed, failed and skipped.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, globSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, relative, resolve, sep } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    checks: { type: "boolean", default: false },
    floor: { type: "string", default: "0" },
    record: { type: "boolean", default: false },
    together: { type: "string", default: "test" },
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
 * Files whose load or budget a busy machine spoils: only what mostly waits runs beside them. Redis that
 * answers after 250 ms, for one, counts as away.
 */
const calm = [
  /^test\/gateway\/replicas\.test\.ts$/,
  /^test\/hardening\/overload\.test\.ts$/,
  /^test\/ratelimit\/redis\/bucket\.test\.ts$/,
];

/** Files that measure their own process, or look at what it has loaded. */
const alone = [
  ...calm,
  /^test\/(collections\/under-way|hardening\/(heap|leaks)|telemetry\/tracing\/tracing)\.test\.ts$/,
];

/**
 * More room for short-lived objects, in MB, so that they are collected less often: it spares up to an
 * eighth of the processor time. Files that measure their own process run without.
 */
const heapOptions = ["--min-semi-space-size=32", "--max-semi-space-size=32"];

/** Files that look at pages: one process of them starts one Chromium. */
const browsing = [
  /^test\/console\/(?!api)/,
  /^test\/(examples\/browser|gateway\/event-source|graphql\/graphiql)\.test\.ts$/,
  /^test\/sandbox\/demo\//,
];

interface Times {
  readonly seconds: number;
  /** Of processor time, its children's included. */
  readonly cpuSeconds: number;
}

const timesFile = new URL("test-seconds.json", import.meta.url);
const timesOfFiles = new Map(
  Object.entries<[number, number]>(JSON.parse(readFileSync(timesFile, "utf8"))).map(
    ([file, [seconds, cpuSeconds]]) => [file, { seconds, cpuSeconds }],
  ),
);
/** What is taken for a file that is not recorded, since it takes less than a second. */
const shortTimes: Times = { seconds: 0.5, cpuSeconds: 0.3 };
/** What takes this long has a process of its own. */
const longSeconds = 35;
/** The others share a process for about this long. */
const sharedSeconds = 60;

/** Processors that those under way may want together: more than there are, since they also wait. */
const processors = 1.25 * availableParallelism();

/** What a calm file is taken to want: little is left for others. */
const calmProcessors = availableParallelism() - 0.25;

/** What one process is to do. */
interface Job {
  readonly name: string;
  readonly args: readonly string[];
  /** Its test files, which say how many tests they ran; none for a check. */
  readonly files: readonly string[];
  /** How long it probably takes, and how many processors it wants meanwhile. */
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
  /** Why the file failed; undefined when it did not. */
  readonly failure: string | undefined;
  readonly output: string;
}

/** What processes of this run share: compiled code, and what was built if the checks built it. */
const ofRun = {
  NODE_COMPILE_CACHE: resolve("node_modules/.cache/compiled"),
  ...(values.checks ? { BUILT_COMMAND_LINE: resolve("dist/cli.js") } : {}),
};

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

const files = globSync((positionals.length > 0 ? positionals : ["test"]).map(testsOf)).sort();
const left = new Set(files);
/** Takes the files that match out of those that are left. */
const taken = (matches: (file: string) => boolean) => {
  const found = [...left].filter(matches);
  for (const file of found) left.delete(file);
  return found;
};
const oneOf = (patterns: readonly RegExp[]) => (file: string) =>
  patterns.some((pattern) => pattern.test(file));
const jobs = [taken(oneOf(browsing)), ...taken(oneOf(alone)).map((file) => [file])]
  .concat(
    shared(taken((file) => folderOf(file) !== undefined && timesOf([file]).seconds < longSeconds)),
  )
  .concat([...left].map((file) => [file]))
  .filter(({ length }) => length > 0)
  .map(testJob);
if (values.checks) {
  // Writes files that the tests load, so nothing runs beside it.
  await runAll([checkJob("generated")]);
  jobs.push(checkJob("static"));
}
// What wants the machine for itself begins first: later there is always something under way.
jobs.sort((a, b) => Number(isCalm(b)) - Number(isCalm(a)) || b.seconds - a.seconds);
await runAll(jobs);
clearTimeout(runTimer);
if (values.record) record();
report();

/** A folder stands for the tests below it. */
function testsOf(path: string): string {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory()
    ? join(path, "**/*.test.ts")
    : path;
}

/** The folder within `--together` that a file is in; undefined for one that shares no process. */
function folderOf(file: string): string | undefined {
  const [folder = "", ...more] = relative(values.together, file).split(sep);
  return folder === ".." ? undefined : more.length > 0 ? folder : values.together;
}

/** Shares processes out among files: those of a folder together, and small folders with others. */
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

/** In so many parts, each for about as long as the others. */
function evenly(several: readonly string[], parts: number): string[][] {
  const shares = Array.from({ length: parts }, () => [] as string[]);
  const longestFirst = several.toSorted((a, b) => timesOf([b]).seconds - timesOf([a]).seconds);
  for (const file of longestFirst) {
    const [least] = shares.toSorted((a, b) => timesOf(a).seconds - timesOf(b).seconds);
    least?.push(file);
  }
  return shares.map((share) => share.sort());
}

function isCalm({ processors }: Job): boolean {
  return processors === calmProcessors;
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
  const processors = oneOf(calm)(file) ? calmProcessors : cpuSeconds / seconds;
  const times = { files: several, seconds, processors };
  const reporter = ["--test-reporter=spec", "--test-timeout=120000"];
  const options = oneOf(alone)(file) ? [] : heapOptions;
  if (more.length === 0) return { ...times, name: file, args: [...options, ...reporter, file] };
  const folders = [...new Set(several.map((one) => folderOf(one) ?? values.together))];
  const name = `${several.length} files of ${folders.join(", ")}, from ${file}`;
  return {
    ...times,
    name,
    args: [...options, "--test", "--test-isolation=none", ...reporter, ...several],
  };
}

function checkJob(half: "generated" | "static"): Job {
  const args = ["scripts/check.ts", half];
  return { name: `checks: ${half}`, args, files: [], seconds: 20, processors: 1 };
}

/** Runs them, in this order where the processors allow it. */
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

/** Runs one process, the leader of a process group of its own, until it ends or its time is up. */
async function runOne({ name, args, files }: Job): Promise<Outcome> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const beganMs = performance.now();
  const child = spawn(process.execPath, args, {
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...ofRun, ...env },
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

function shown({ seconds, cpuSeconds }: Times): string {
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

/**
 * Takes over what the files of this run took: those that shared a process each what they took before,
 * in proportion. Those that are gone are forgotten.
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
