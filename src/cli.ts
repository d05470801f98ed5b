#!/usr/bin/env node
import { runCommandLine } from "./cli/command-line.ts";

/** The reader of the output may close it early (`| head`): exit without an error message. */
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    process.exit();
  });
}

const code = await runCommandLine(process.argv.slice(2), process.env);
if (code !== 0) process.exitCode = code;
