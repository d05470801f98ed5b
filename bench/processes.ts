/** Starts and ends the processes of a benchmark, and reads their figures from `/proc` (Linux). */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const children = new Set<ChildProcess>();
let folder: string | undefined;

// A signal that ends the run also ends the processes that it started.
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    void stopAll().finally(() => process.kill(process.pid, signal));
  });
}

/** A temporary folder for this run, removed at its end. */
export function directory(): string {
  folder ??= mkdtempSync(join(tmpdir(), "bench-"));
  return folder;
}

/** The command, pinned to one core by `taskset` unless `core` is undefined. */
export function onCore(core: number | undefined, command: string): [command: string, ...string[]] {
  return core === undefined ? [command] : ["taskset", "-c", String(core), command];
}

/** Registers a process to be ended with the run. */
export function own<Child extends ChildProcess>(child: Child): Child {
  children.add(child);
  child.once("exit", () => children.delete(child));
  return child;
}

export interface Started {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly urls: Readonly<Record<string, string>>;
}

/** Starts a script beside this file, which prints `ready name=address …`. */
export async function start(
  script: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  core?: number,
): Promise<Started> {
  const file = new URL(script, import.meta.url).pathname;
  const [command, ...before] = onCore(core, process.execPath);
  const child = own(
    spawn(command, [...before, file, ...args], {
      env: { PATH: process.env.PATH, ...env },
      stdio: ["ignore", "pipe", "inherit"],
    }),
  );
  for await (const line of createInterface(child.stdout)) {
    const message = line.startsWith("{") ? String(JSON.parse(line).msg) : line;
    if (!message.startsWith("ready ")) continue;
    child.stdout.resume();
    const pairs = message.split(" ").slice(1);
    return { child, pid: child.pid ?? 0, urls: Object.fromEntries(pairs.map((p) => p.split("="))) };
  }
  throw new Error(`${script} did not start`);
}

/** Starts a Redis without persistence; undefined if `redis-server` is not installed. */
export async function startRedis(
  core?: number,
): Promise<{ readonly url: string; readonly pid: number } | undefined> {
  if (spawnSync("redis-server", ["--version"]).status !== 0) return undefined;
  const port = await new Promise<number>((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
  const settings = { port, bind: "127.0.0.1", save: "", appendonly: "no", dir: directory() };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const [command, ...before] = onCore(core, "redis-server");
  const child = own(spawn(command, [...before, ...args], { stdio: ["ignore", "pipe", "inherit"] }));
  for await (const line of createInterface(child.stdout)) {
    if (!line.includes("Ready to accept connections")) continue;
    child.stdout.resume();
    return { url: `redis://127.0.0.1:${port}`, pid: child.pid ?? 0 };
  }
  return undefined;
}

/** Ends a process with SIGTERM, and with SIGKILL after 5 s. */
export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill();
  const late = setTimeout(() => child.kill("SIGKILL"), 5_000);
  await ended;
  clearTimeout(late);
}

/** Ends all processes of this run and removes its folder. */
export async function stopAll(): Promise<void> {
  await Promise.all([...children].map(stop));
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  folder = undefined;
}

/** User and system time of a process so far, in seconds; exact to 0.01 s. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** Resident memory of a process: now, or at its peak. */
export function memoryKiB(pid: number, which: "now" | "peak"): number {
  const name = which === "now" ? "VmRSS" : "VmHWM";
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? 0);
}

export const median = (numbers: readonly number[]) =>
  numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? Number.NaN;
