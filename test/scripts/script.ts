import { execFile } from "node:child_process";
import { join } from "node:path";

export const root = join(import.meta.dirname, "../..");

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs one of the project's scripts to its end, with its tools on the path. */
export function runScript(
  name: string,
  args: readonly string[] = [],
  { cwd = root, env = {} }: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<Ended> {
  const PATH = `${join(root, "node_modules/.bin")}:${process.env.PATH}`;
  const options = { cwd, env: { ...process.env, PATH, ...env }, timeout: 100_000 };
  return new Promise((resolve) => {
    const line = [join(root, "scripts", name), ...args];
    const child = execFile(process.execPath, line, options, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode, stdout, stderr }),
    );
  });
}
