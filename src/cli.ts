#!/usr/bin/env node
import { runCommandLine } from "./cli/command-line.ts";

/** `| head` ends the reading: nobody is left to tell. */
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    process.exit();
  });
}

const code = await runCommandLine(process.argv.slice(2), process.env);
if (code !== 0) process.exitCode = code;
