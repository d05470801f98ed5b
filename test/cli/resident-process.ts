/**
 * The command line in a long-running process: it runs one command after another for
 * test/cli/resident.ts, each with its own environment, input and output.
 */
import { Readable } from "node:stream";
import { runCommandLine } from "../../src/cli/program.ts";
import type { Asked } from "./resident.ts";
import type { Ran } from "./run.ts";

process.on("message", async ({ args, env, input }: Asked) => {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  Object.defineProperty(process, "stdin", {
    value: Readable.from([Buffer.from(input)], { objectMode: false }),
    configurable: true,
  });
  const [out, err] = [process.stdout, process.stderr].map((stream) => {
    const chunks: Buffer[] = [];
    stream.write = ((chunk: string | Uint8Array, ...rest: unknown[]) => {
      chunks.push(Buffer.from(chunk as string));
      const done = rest.find((one) => typeof one === "function") as (() => void) | undefined;
      if (done) process.nextTick(done);
      return true;
    }) as typeof stream.write;
    return chunks;
  }) as [Buffer[], Buffer[]];
  const code = await runCommandLine(args, process.env);
  for (const signal of ["SIGINT", "SIGTERM"]) process.removeAllListeners(signal);
  const said: Ran = {
    code,
    out: Buffer.concat(out).toString(),
    err: Buffer.concat(err).toString(),
  };
  process.send!(said);
});
// The test process has ended.
process.on("disconnect", () => process.exit());
