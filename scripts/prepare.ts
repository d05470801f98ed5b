/**
 * Builds what a checkout needs and git does not keep. Runs at the end of `npm ci`, and does nothing
 * where only the packages for run time are installed.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

if (existsSync("node_modules/@bufbuild/buf") && existsSync("node_modules/typescript")) {
  const { status } = spawnSync("npm run --silent clients", { shell: true, stdio: "inherit" });
  process.exitCode = status ?? 1;
}
