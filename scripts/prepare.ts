/**
 * Builds the files that a checkout needs and that are not in git. Runs at the end of `npm ci`, and
 * does nothing if only production dependencies are installed. npm also runs it before each
 * `npx payments-gateway`, which must not build anew what a running gateway or a test reads.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

const isInstall = process.env.npm_command !== "exec";
const isCheckout =
  existsSync("node_modules/@bufbuild/buf") && existsSync("node_modules/typescript");
if (isInstall && isCheckout) {
  const builds = "npm run --silent clients && npm run --silent build:console";
  const { status } = spawnSync(builds, { shell: true, stdio: "inherit" });
  process.exitCode = status ?? 1;
}
