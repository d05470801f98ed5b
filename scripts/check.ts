/**
 * Runs all checks besides the tests: generated files are current, the gateway builds, format, lint,
 * types, lint of the proto files, imports between rooms, changes that break callers, and paths in
 * documentation pages. It writes only generated files that are not current, and `dist/`. The
 * argument `generated` or `static` runs one half: the first writes files, the second only reads
 * them and may run beside tests.
 */
import { exec, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";

type Step = readonly [name: string, command: string];

/** The steps in `built` use the generated files; they run in parallel after `generated`. */
const generated: readonly Step[] = [["generate", "npm run --silent generate"]];
const built: readonly Step[] = [
  ["clients", "npm run --silent clients"],
  ["build", "npm run --silent build"],
];
const readOnly: readonly Step[] = [
  ["buf lint", "buf lint"],
  ["buf format", "buf format --diff --exit-code proto"],
  ["biome", "biome ci --colors=off --error-on-warnings ."],
  // One checker and less frequent garbage collection halve the processor time.
  ["types", "GOGC=400 tsc --checkers 1"],
  ["types of pages", "tsc -p examples/browser"],
  ["types of the console", "tsc -p console"],
  ["arrows", "node scripts/arrows.ts"],
  ["change policy", "node scripts/change-policy.ts"],
  ["paths in pages", "node scripts/docs/paths.ts"],
];

const half = process.argv[2];
if (half !== "static") {
  const before = digests();
  for (const step of generated) await run(step);
  await Promise.all(built.map(run));
  const changed = [...digests()].filter(([file, digest]) => before.get(file) !== digest);
  if (changed.length > 0) {
    console.error("generated files were not current, commit them as they are now:");
    for (const [file] of changed) console.error(`  ${file}`);
    process.exit(1);
  }
}
if (half !== "generated") for (const step of readOnly) await run(step);

async function run([name, command]: Step): Promise<void> {
  const startMs = Date.now();
  await new Promise<void>((resolve) => {
    exec(command, { maxBuffer: Number.POSITIVE_INFINITY }, (error, stdout, stderr) => {
      if (error === null) return resolve();
      console.error(`${stdout}${stderr}\n${name} failed: ${command}`);
      process.exit(1);
    });
  });
  console.log(`${name}: ok (${((Date.now() - startMs) / 1_000).toFixed(1)} s)`);
}

/** Digests of the checkout's files; empty outside a git checkout, so nothing is compared. */
function digests(): Map<string, string> {
  const files = spawnSync("git", ["ls-files", "-co", "--exclude-standard", "-z"], {
    encoding: "utf8",
  });
  if (files.status !== 0) return new Map();
  return new Map(
    files.stdout
      .split("\0")
      .filter((file) => statSync(file, { throwIfNoEntry: false })?.isFile())
      .map((file) => [file, createHash("sha256").update(readFileSync(file)).digest("hex")]),
  );
}
