#!/usr/bin/env node
import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";

// Compiled code is kept for later starts, if this folder can be written.
enableCompileCache(fileURLToPath(new URL("../node_modules/.cache/compiled", import.meta.url)));

/** The reader of the output may close it early (`| head`): exit without an error message. */
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    process.exit();
  });
}

const { runCommandLine } = await import("./cli/program.ts");
process.exitCode = await runCommandLine(process.argv.slice(2), process.env);
// What a failed start has opened would keep the process alive: it ends once all is written.
if (process.exitCode !== 0) {
  process.stdout.write("", () => process.stderr.write("", () => process.exit()));
}
