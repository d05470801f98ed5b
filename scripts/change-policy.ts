/**
 * Compares the contract with that of the last release in `released/`, and fails on a change that
 * breaks callers: in the proto files what `buf breaking` finds, in the GraphQL schema a removed or
 * retyped field, argument, type or enum value, or an input that has become required.
 *
 *   node scripts/change-policy.ts                       compares
 *   node scripts/change-policy.ts renew [--breaking]    at a release: stores the current contract
 *                                                       in `released/`; refuses one that breaks
 *                                                       callers, unless --breaking is given
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { BreakingChangeType, buildSchema, findSchemaChanges, parse, print, visit } from "graphql";

const image = "released/payments-v1.binpb.gz";
const releasedSchema = "released/schema.graphql";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { breaking: { type: "boolean", default: false } },
});
const renewing = positionals[0] === "renew";

const breaks = renewing && values.breaking ? [] : [...protoBreaks(), ...schemaBreaks()];
if (breaks.length > 0) {
  console.error("These changes break callers of the last release (CONTRIBUTING.md, Deprecate):");
  for (const one of breaks) console.error(`  ${one}`);
  process.exitCode = 1;
} else if (renewing) {
  renew();
}

function protoBreaks(): string[] {
  const { status, stdout, stderr } = buf("breaking", "proto", "--against", image);
  // Exit code 100: the comparison found breaking changes.
  if (status !== 0 && status !== 100) throw new Error(`buf breaking failed: ${stdout}${stderr}`);
  return stdout.split("\n").filter((line) => line !== "");
}

function schemaBreaks(): string[] {
  const [released, current] = [releasedSchema, "schema.graphql"].map((file) =>
    buildSchema(readFileSync(file, "utf8")),
  );
  return findSchemaChanges(released!, current!)
    .filter(({ type }) => Object.hasOwn(BreakingChangeType, type))
    .map(({ description }) => `schema.graphql: ${description}`);
}

function renew(): void {
  mkdirSync("released", { recursive: true });
  const { status, stderr } = buf("build", "proto", "--exclude-source-info", "--output", image);
  if (status !== 0) throw new Error(`buf build failed: ${stderr}`);
  writeFileSync(releasedSchema, withoutDescriptions(readFileSync("schema.graphql", "utf8")));
}

function withoutDescriptions(schema: string): string {
  const bare = visit(parse(schema), {
    enter: (node) => ("description" in node ? { ...node, description: undefined } : undefined),
  });
  return `${print(bare)}\n`;
}

function buf(...args: readonly string[]) {
  const run = spawnSync("buf", args, { encoding: "utf8" });
  if (run.error) throw run.error;
  return run;
}
