/** Runs test files in this process, one after another: `node scripts/test-files.ts <file> ...`. */
import { run } from "node:test";
import { spec } from "node:test/reporters";

run({ files: process.argv.slice(2), isolation: "none" })
  .on("test:summary", ({ success }) => {
    if (!success) process.exitCode = 1;
  })
  .compose(spec)
  .pipe(process.stdout);
