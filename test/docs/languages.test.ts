import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { after, beforeEach, describe, it } from "node:test";
import { hasProtoc } from "../protoc.ts";
import { directory } from "../stores/sqlite/directories.ts";
import { timeoutMs } from "../until.ts";
import { codeBlocks, root } from "./markdown.ts";

const skip =
  process.env.CI || hasProtoc
    ? false
    : "needs protoc: apt-get install protobuf-compiler libprotobuf-dev";
const { stdout } = spawnSync("protoc", ["--version"], { encoding: "utf8" });
const isOld = Number(/libprotoc (\d+)/.exec(stdout ?? "")?.[1]) < 22;

/** What a clone has, without history and packages. */
const clone = directory({ after });
for (const name of ["proto", "third_party", "buf.yaml"]) {
  cpSync(join(root, name), join(clone, name), { recursive: true });
}
beforeEach(() => rmSync(join(clone, "gen"), { recursive: true, force: true }));

const blocks = await codeBlocks("docs/languages.md");
const [build, generate, direct, older] = blocks
  .filter(({ lang }) => lang === "sh")
  .map(({ text }) => text);

describe("the commands for other languages, in a clone", () => {
  it("build the contract with buf", () => run(build));

  it("generate code with buf, without the validation rules", { skip }, () => {
    // The plugins of gRPC are in other packages.
    const template = blocks.find(({ lang }) => lang === "yaml")?.text ?? "";
    const own = template.replace(/ *- local: grpc_python_plugin\n *out: gen\n?/, "");
    assert.notEqual(own, template);
    writeFileSync(join(clone, "buf.gen.python.yaml"), own);
    run(generate);
    assert.deepEqual(generated(), expected());
    for (const file of generated()) {
      assert.doesNotMatch(readFileSync(join(clone, "gen", file), "utf8"), /import.*validate/);
    }
  });

  it("generate code with protoc, from version 22 on", { skip }, () => {
    if (isOld) return assert.throws(() => run(direct), /"debug_redact" unknown/);
    run(direct);
    assert.deepEqual(generated(), ["buf/validate/validate_pb2.py", ...expected()]);
  });

  it("generate code with protoc of any version, from what buf built", { skip }, () => {
    run(older);
    assert.deepEqual(generated(), ["buf/validate/validate_pb2.py", ...expected()]);
  });
});

function run(commands: string | undefined): void {
  assert.ok(commands);
  const PATH = [join(root, "node_modules/.bin"), process.env.PATH].join(delimiter);
  execFileSync("sh", ["-ec", commands.replaceAll("npx buf", "buf")], {
    cwd: clone,
    env: { ...process.env, PATH },
    stdio: ["ignore", "ignore", "pipe"],
    timeout: timeoutMs,
  });
}

function generated(): string[] {
  return globSync("**/*.py", { cwd: join(clone, "gen") }).sort();
}

function expected(): string[] {
  return globSync("payments/v1/*.proto", { cwd: join(root, "proto") })
    .map((file) => file.replace(/\.proto$/, "_pb2.py"))
    .sort();
}
