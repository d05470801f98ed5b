/**
 * Builds, checks and packs a release into `artifacts/`, and publishes nothing. It refuses a tree
 * with uncommitted changes, a contract that is not the one in `released/`, and packages that differ
 * from the lock file. Every file has the same bytes on every machine with the same Node and npm:
 * times are that of the commit.
 *
 *   node scripts/release.ts                with all tests
 *   node scripts/release.ts --skip-tests   with the checks alone
 *   node scripts/release.ts pack <folder>  packs what is built, into an empty folder
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { parseArgs } from "node:util";

const root = resolve(import.meta.dirname, "..");
/** What the builds write. tsc leaves the output of a removed file, so it begins without any. */
const built = ["dist", "clients/*/dist", "clients/typescript/src/gen", "clients/*.binpb"];
/** Files that are released as they are. */
const contracts = [
  "clients/payments-v1.binpb",
  "clients/grpc-service-config.json",
  "openapi.json",
  "schema.graphql",
  "schema.subgraph.graphql",
];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { "skip-tests": { type: "boolean", default: false } },
});
try {
  if (positionals[0] === "pack" && positionals[1] !== undefined) pack(resolve(positionals[1]));
  else release();
} catch (error) {
  // Of a command that failed, its name and what it wrote to standard error.
  console.error((error as Error).message);
  process.exitCode = 1;
}

function release(): void {
  refuseChanges("commit these changes first");
  // The next release is compared with the contract of this one.
  show("npm", "run", "--silent", "release:contract");
  refuseChanges("the contract in released/ was another one: commit it as it is now");
  // Fails, and says why, if a package is missing or has another version.
  run("npm", "ls", "--all");
  show("npm", "run", "--silent", "audit");

  for (const path of globSync(built, { cwd: root })) rmSync(join(root, path), { recursive: true });
  if (values["skip-tests"]) show("npm", "run", "--silent", "check");
  else show("npm", "test");

  const folder = join(root, "artifacts");
  rmSync(folder, { recursive: true, force: true });
  pack(folder);
  console.log(readFileSync(join(folder, "SHA256SUMS"), "utf8"));
  if (values["skip-tests"]) console.log("The tests were skipped: do not publish this.");
}

function refuseChanges(why: string): void {
  const changes = run("git", "status", "--porcelain");
  if (changes !== "") throw new Error(`${why}:\n${changes}`);
}

function pack(folder: string): void {
  mkdirSync(folder, { recursive: true });
  packPackages(folder);
  for (const file of contracts) copyFileSync(join(root, file), join(folder, basename(file)));
  writeFileSync(join(folder, "sbom.cdx.json"), billOfMaterials());
  const sums = readdirSync(folder)
    .sort()
    .map((file) => `${sha256(readFileSync(join(folder, file)))}  ${file}\n`);
  writeFileSync(join(folder, "SHA256SUMS"), sums.join(""));
}

/** npm gives the files of a package one time and owner, but leaves them the checkout's modes. */
function packPackages(folder: string): void {
  const staged = mkdtempSync(join(tmpdir(), "release-"));
  try {
    stageGateway(join(staged, "gateway"));
    for (const client of ["typescript", "graphql"]) {
      cpSync(join(root, "clients", client), join(staged, client), { recursive: true });
    }
    for (const entry of readdirSync(staged, { recursive: true, withFileTypes: true })) {
      chmodSync(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o755 : 0o644);
    }
    const packages = readdirSync(staged).map((name) => join(staged, name));
    run("npm", "pack", "--ignore-scripts", "--silent", "--pack-destination", folder, ...packages);
  } finally {
    rmSync(staged, { recursive: true });
  }
}

/**
 * The gateway as the image runs it: bundled, so it installs without further packages. (Node.js
 * strips no types below `node_modules`, so the sources cannot be installed.)
 */
function stageGateway(staged: string): void {
  const { name, version, description, type, engines } = manifest();
  const bin = { [name]: "dist/cli.js" };
  const own = { name, version, description, type, engines, bin, files: ["dist"] };
  cpSync(join(root, "dist"), join(staged, "dist"), { recursive: true });
  writeFileSync(join(staged, "package.json"), `${JSON.stringify(own, undefined, 2)}\n`);
}

interface BillOfMaterials {
  serialNumber?: string;
  readonly metadata: { timestamp: string; readonly component: { name: string } };
  components: readonly {
    readonly "bom-ref": string;
    readonly name: string;
    readonly purl: string;
  }[];
  dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

/**
 * The packages whose code is in the release (CycloneDX): our own, and those whose licenses the build
 * wrote. What npm installs for the gateway includes peers of which no code is used.
 */
function billOfMaterials(): string {
  const options = ["--package-lock-only", "--sbom-format", "cyclonedx", "--sbom-type"];
  const bill = JSON.parse(run("npm", "sbom", ...options, "application")) as BillOfMaterials;
  const licenses = readFileSync(join(root, "dist/third-party-licenses.txt"), "utf8");
  const bundled = licenses.split("\n\n---\n\n").map((text) => text.split(": ", 1)[0]);
  const inside = new Set(bundled.map((named) => named?.replace(" ", "@")));
  const nameOf = (purl: string) => decodeURIComponent(purl.replace(/^pkg:npm\/(.*)@.*$/, "$1"));
  const ships = ({ purl }: BillOfMaterials["components"][number]) => {
    const named = decodeURIComponent(purl.replace("pkg:npm/", ""));
    return named.startsWith("@payments-gateway/") || inside.has(named);
  };
  bill.components = [...bill.components.filter(ships), componentOf("clients/graphql")]
    // npm names a package of the workspace by its folder.
    .map((component) => ({ ...component, name: nameOf(component.purl) }));
  const { name, version } = manifest();
  const refs = new Set(bill.components.map((component) => component["bom-ref"]));
  bill.dependencies = bill.dependencies
    .filter(({ ref }) => refs.has(ref) || ref === `${name}@${version}`)
    .map(({ ref, dependsOn }) => ({
      ref,
      dependsOn: dependsOn.filter((other) => refs.has(other)),
    }));
  // npm takes the name of the checkout's folder, a random number and the present time.
  bill.metadata.component.name = name;
  bill.metadata.timestamp = new Date(Number(sourceDateEpoch()) * 1_000).toISOString();
  delete bill.serialNumber;
  const id = sha256(JSON.stringify(bill)).replace(
    /^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/,
    "$1-$2-8$3-8$4-$5",
  );
  return `${JSON.stringify({ ...bill, serialNumber: `urn:uuid:${id}` }, undefined, 2)}\n`;
}

/** A package of ours that is outside the workspace, so that npm does not list it. */
function componentOf(folder: string) {
  const { name, version, description } = manifest(folder);
  const ref = { "bom-ref": `${name}@${version}`, type: "library", name, version };
  return {
    ...ref,
    scope: "required",
    description,
    purl: `pkg:npm/${name.replace("@", "%40")}@${version}`,
  };
}

function manifest(folder = "") {
  return JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));
}

/** Seconds since the epoch: the time of the commit, unless the environment says another. */
function sourceDateEpoch(): string {
  return process.env.SOURCE_DATE_EPOCH || run("git", "log", "-1", "--format=%ct").trim();
}

function sha256(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}

function run(program: string, ...args: readonly string[]): string {
  return execFileSync(program, args, { cwd: root, encoding: "utf8", maxBuffer: 2 ** 26 });
}

function show(program: string, ...args: readonly string[]): void {
  execFileSync(program, args, { cwd: root, stdio: "inherit" });
}
