import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { timeoutMs, until } from "../until.ts";

const running = new Set<ChildProcess>();

/** Kills every example that a test has left running. */
export function killExamples(): void {
  for (const child of running) child.kill("SIGKILL");
}

/** Runs a program as a user would, and collects the lines that it prints. */
export function startExample(file: string, args: readonly string[], env: NodeJS.ProcessEnv) {
  const child = spawn(file, args, {
    env: { PATH: process.env.PATH, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: timeoutMs,
  });
  running.add(child);
  const lines: string[] = [];
  for (const output of [child.stdout, child.stderr]) {
    createInterface(output).on("line", (line) => lines.push(line));
  }
  const exit = once(child, "close").then(([code]) => {
    running.delete(child);
    return { code: code as number | null, lines };
  });
  /** The first line that matches. */
  const seen = (pattern: RegExp) =>
    until(() => lines.find((line) => pattern.test(line)), `${pattern} in ${lines.join("\n")}`);
  return { child, exit, seen };
}
