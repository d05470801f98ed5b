import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { after } from "node:test";
import { timeoutMs } from "../until.ts";
import type { Ran, RunOptions } from "./run.ts";

/** The command that a resident process should run. */
export interface Asked {
  readonly args: readonly string[];
  readonly env: Record<string, string>;
  readonly input: string | Uint8Array;
}

const idle: ChildProcess[] = [];

after(() => {
  for (const resident of idle) resident.disconnect();
});

/**
 * Runs `payments-gateway` with these arguments and nothing but this environment, in a process that
 * is reused for later commands, so that the modules are loaded once. test/docs/cli.test.ts and
 * test/cli/usage.test.ts also run commands as processes of their own.
 */
export async function run(
  args: readonly string[],
  { env = {}, input = "" }: RunOptions = {},
): Promise<Ran> {
  const resident =
    idle.pop() ??
    fork(new URL("./resident-process.ts", import.meta.url), { serialization: "advanced" });
  const gone = new AbortController();
  const leave = () => gone.abort(new Error(`ended by ${args.join(" ")}`));
  resident.once("exit", leave);
  resident.send({ args, env, input } satisfies Asked);
  const signal = AbortSignal.any([gone.signal, AbortSignal.timeout(timeoutMs)]);
  try {
    const [said] = (await once(resident, "message", { signal })) as [Ran];
    idle.push(resident);
    return said;
  } catch (error) {
    resident.kill("SIGKILL");
    throw error;
  } finally {
    resident.off("exit", leave);
  }
}
