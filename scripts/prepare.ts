/**
 * Builds the files that a checkout needs and that are not in git. Runs at the end of `npm ci`, and
 * does nothing if only production dependencies are installed.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

if (existsSync("node_modules/@bufbuild/buf") && existsSync("node_modules/typescript")) {
  const builds = "npm run --silent clients && npm run --silent build:console";
  const { status } = spawnSync(builds, { shell: true, stdio: "inherit" });
  process.exitCode = status ?? 1;
}
