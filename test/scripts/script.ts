import { spawn } from "node:child_process";
import { join } from "node:path";
import { ended, type Ran } from "../cli/run.ts";

export const root = join(import.meta.dirname, "../..");

/** Runs one of the project's scripts to its end, with its tools on the path. */
export function runScript(
  name: string,
  args: readonly string[] = [],
  { cwd = root, env = {} }: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<Ran> {
  const PATH = `${join(root, "node_modules/.bin")}:${process.env.PATH}`;
  const options = { cwd, env: { ...process.env, PATH, ...env }, timeout: 100_000 };
  return ended(spawn(process.execPath, [join(root, "scripts", name), ...args], options));
}
