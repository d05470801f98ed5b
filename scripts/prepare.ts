/**
 * Builds what a checkout needs and git does not keep. Runs at the end of `npm ci`, and does nothing
 * where only the packages for run time are installed.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

if (existsSync("node_modules/@bufbuild/buf") && existsSync("node_modules/typescript")) {
  const builds = "npm run --silent clients && npm run --silent build:console";
  const { status } = spawnSync(builds, { shell: true, stdio: "inherit" });
  process.exitCode = status ?? 1;
}
