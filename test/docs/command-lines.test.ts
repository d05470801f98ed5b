import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { commands } from "../../src/cli/program.ts";
import { type CommandLine, faultOf, shownCommandLines, stepsOf, wordsOf } from "./command-lines.ts";
import { root } from "./markdown.ts";

const file = (path: string) => readFileSync(join(root, path), "utf8");
const { scripts } = JSON.parse(file("package.json")) as { scripts: Record<string, string> };
const variables = [
  ...["docs/configuration.md", "docs/cli.md", "examples/webhook-receiver.ts"],
  "test/faults/failovers.test.ts",
].map(file);
const documented = new Set(variables.join().match(/\b[A-Z][A-Z_]+\b/g));
// Variables of the languages themselves.
for (const name of ["GOPATH", "PYTHONPATH"]) documented.add(name);
for (const [, name = ""] of file("Dockerfile").matchAll(/^ARG (\w+)/gm)) documented.add(name);
/** npm's own commands that pages name. */
const npmCommands = new Set(["ci", "install", "pack", "publish"]);
const manifests = globSync("deploy/kubernetes/*.yaml", { cwd: root }).map(file).join("\n");

/** Fills in the placeholders, as a reader would. */
const filledIn = (line: string) =>
  line.replaceAll("<url>", "http://127.0.0.1:3000").replaceAll("<command>", "check");

async function faultsOf(lines: readonly CommandLine[]): Promise<string[]> {
  const commands = await wordsOf(lines.map(({ line }) => filledIn(line)));
  const faults: string[] = [];
  for (const [nth, { where, line, named }] of lines.entries()) {
    const found: string[] = [];
    for (const [, name = ""] of line.matchAll(/(?:^|\s)([A-Z][A-Z_]+)=/g)) {
      const known = documented.has(name) || documented.has(name.replace(/_FILE$/, ""));
      if (!known) found.push(`no variable ${name}`);
    }
    for (const words of commands[nth] ?? []) found.push(...(await faultsOfWords(words)));
    const told = found.filter((fault) => !(named && /required (option|argument)/.test(fault)));
    faults.push(...told.map((fault) => `${where}: ${line}: ${fault}`));
  }
  return faults;
}

async function faultsOfWords([program = "", ...args]: readonly string[]): Promise<string[]> {
  const [first = "", ...rest] = args;
  if (program === "payments-gateway") return faultsOfOwn(args);
  if (program === "node" && first === "dist/cli.js") return faultsOfOwn(rest);
  if (program === "npx" && first === "payments-gateway") return faultsOfOwn(rest);
  if (program === "npx") return missing(existsSync(join(root, "node_modules/.bin", first)), first);
  if (program === "npm" && first === "run") return missing(rest[0]! in scripts, rest[0]!);
  if (program === "npm") return missing(first in scripts || npmCommands.has(first), first);
  return args.flatMap((arg) => {
    const [, name, value = ""] = /^--?(from-file=|k$)(.*)$/.exec(arg) ?? [];
    if (name === "from-file=") return missing(manifests.includes(value), value);
    return arg.startsWith("deploy/") ? missing(existsSync(join(root, arg)), arg) : [];
  });
}

async function faultsOfOwn([name = "", ...rest]: readonly string[]): Promise<string[]> {
  const fault = await faultOf(name === "help" ? [...rest, "--help"] : [name, ...rest]);
  return fault === undefined ? [] : [fault];
}

function missing(there: boolean, what: string): string[] {
  return there ? [] : [`there is no ${what}`];
}

describe("the commands that pages and help show", () => {
  it("are accepted by the command line, the scripts and the shell, each with its options", async () => {
    const lines = await shownCommandLines();
    assert.ok(lines.length > 80, `${lines.length} lines`);
    for (const name of Object.keys(commands)) {
      assert.ok(
        lines.some(({ where }) => where === `help ${name}`),
        `help ${name} has examples`,
      );
    }
    assert.deepEqual(await faultsOf(lines), []);
  });

  it("are reported when they are wrong (control)", async () => {
    const fault = async (line: string) => (await faultsOf([{ where: "here", line }])).join();
    assert.equal(await fault("npx payments-gateway listen --limit 1 --json | head"), "");
    assert.match(await fault("payments-gateway listen --follow"), /unknown option '--follow'/);
    assert.match(await fault("payments-gateway dead-letters burn a"), /unknown command 'burn'/);
    assert.match(await fault('curl -H "$(npx payments-gateway sign)"'), /missing required arg/);
    assert.match(await fault("npx payments-gateway token"), /required option '--external-id/);
    assert.match(await fault("npm run deploy"), /there is no deploy/);
    assert.match(await fault("REDIS_ADDRESS=a npm start"), /no variable REDIS_ADDRESS/);
    assert.match(await fault("kubectl create --from-file=redis-address"), /there is no redis-addr/);
    await assert.rejects(fault("npm start &&"), /bash takes it for wrong/);
  });

  it("are read with their continuation lines, apart from their output", () => {
    assert.deepEqual(stepsOf("$ a \\\n  b\n1\n2\n$ c"), [
      { line: "a \\\n  b", shown: "1\n2\n" },
      { line: "c", shown: "" },
    ]);
  });
});
