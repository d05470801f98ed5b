import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename } from "node:fs/promises";
import { basename, delimiter, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { type Sandbox, startSandbox } from "../../sandbox/server.ts";
import type { Gateway } from "../../src/app/gateway.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { approve, ordersIn } from "../gateway/callers.ts";
import { hasProtoc } from "../protoc.ts";
import { startTestGateway } from "../start.ts";
import { freshDirectory } from "../stores/sqlite/directories.ts";
import { scrapeOf } from "../telemetry/scrape.ts";
import { until } from "../until.ts";
import { killExamples, startExample } from "./example.ts";

/** A language's example, which a user builds as its page in the documentation says. */
interface Language {
  readonly name: string;
  /** Debian's packages for it. */
  readonly packages: string;
  readonly isThere: () => boolean;
  /** Builds what the generated code in `<folder>/gen` and the example need; gives the command. */
  readonly build: (folder: string) => Promise<Command>;
}

interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly env?: Record<string, string>;
}

const root = join(import.meta.dirname, "../..");
const buf = join(root, "node_modules/.bin/buf");
const goSources = "/usr/share/gocode";
const python = "/usr/bin/python3";
const jars = [
  ...["grpc-api", "grpc-context", "grpc-core", "grpc-netty", "grpc-protobuf"],
  ...["grpc-protobuf-lite", "grpc-stub", "protobuf", "proto-google-common-protos", "guava"],
  ...["perfmark-api", "netty-buffer", "netty-codec", "netty-codec-http", "netty-codec-http2"],
  ...["netty-common", "netty-handler", "netty-resolver", "netty-transport"],
  "geronimo-annotation-1.3-spec",
].map((name) => `/usr/share/java/${name}.jar`);

const languages: readonly Language[] = [
  {
    name: "go",
    packages:
      "golang-go golang-google-grpc-dev golang-github-golang-protobuf-1-5-dev protoc-gen-go-1-5 protoc-gen-go-grpc",
    isThere: () =>
      ["go", "protoc-gen-go", "protoc-gen-go-grpc"].every(isOnPath) &&
      ["grpc", "protobuf", "genproto"].every((name) =>
        existsSync(join(goSources, "src/google.golang.org", name)),
      ),
    async build(folder) {
      const example = join(root, "examples/go/main.go");
      const file = join(await keptFor("go", folder, example), "example");
      if (!existsSync(file)) {
        // Debian's packages are a GOPATH, beside which the generated code is another.
        const own = join(folder, "src/payments-gateway.internal");
        await mkdir(own, { recursive: true });
        await rename(join(folder, "gen"), join(own, "gen"));
        await run("go", ["build", "-o", file, example], {
          GO111MODULE: "off",
          GOPATH: [folder, goSources].join(delimiter),
          HOME: process.env.HOME ?? folder,
        });
      }
      return { file, args: [] };
    },
  },
  {
    name: "python",
    packages: "python3-grpcio protobuf-compiler libprotobuf-dev protobuf-compiler-grpc",
    isThere: () =>
      hasProtoc &&
      isOnPath("grpc_python_plugin") &&
      spawnSync(python, ["-c", "import grpc, google.protobuf"]).status === 0,
    async build(folder) {
      // Debian has no package with google.rpc for Python.
      const rpc = ["google/rpc/error_details.proto", "google/rpc/status.proto"];
      await run("protoc", ["-I", "third_party", `--python_out=${join(folder, "gen")}`, ...rpc]);
      const env = { PYTHONPATH: join(folder, "gen"), PYTHONDONTWRITEBYTECODE: "1" };
      return { file: python, args: [join(root, "examples/python/main.py")], env };
    },
  },
  {
    name: "java",
    packages:
      "default-jdk-headless libgrpc-java libnetty-java libperfmark-java libgoogle-common-protos-java libprotobuf-java protobuf-compiler libprotobuf-dev protobuf-compiler-grpc-java-plugin",
    isThere: () =>
      hasProtoc && ["javac", "java", "grpc_java_plugin"].every(isOnPath) && jars.every(existsSync),
    async build(folder) {
      const example = join(root, "examples/java/Example.java");
      const path = jars.join(delimiter);
      const kept = await keptFor("java", folder, example);
      const archive = join(kept, "classes.jsa");
      const jar = join(kept, "example.jar");
      const options = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp"];
      const program = [[jar, path].join(delimiter), "Example"];
      if (!existsSync(archive)) {
        const classes = join(folder, "classes");
        const made = ["-nowarn", "-proc:none", "-implicit:class", "-cp", path, "-d", classes];
        await run("javac", [...made, "-sourcepath", join(folder, "gen"), example], {}, folder);
        await run("jar", ["--create", "--file", jar, "-C", classes, "."]);
        // This one reaches no gateway and ends; later ones take the classes it loaded from the archive.
        const dump = [`-XX:ArchiveClassesAtExit=${archive}`, ...options, ...program];
        const env = { PAYMENTS_GATEWAY_URL: "http://127.0.0.1:1" };
        await run("java", [...dump, "pay", "order-none"], env).catch(() => {});
      }
      return { file: "java", args: [`-XX:SharedArchiveFile=${archive}`, ...options, ...program] };
    },
  },
];

for (const { name, packages, isThere, build } of languages) {
  const skip = isThere() ? false : `its tools are not there: apt-get install ${packages}`;
  describe(`the ${name} example`, { skip }, () => {
    const folder = freshDirectory();
    let command: Command;
    let sandbox: Sandbox;
    let gateway: Gateway;
    before(async () => {
      const template = `examples/${name}/buf.gen.yaml`;
      await run(buf, ["generate", "--template", template, "--output", folder.path]);
      await rename(join(folder.path, "examples", name, "gen"), join(folder.path, "gen"));
      command = await build(folder.path);
      sandbox = await startSandbox({
        ...{ host: "127.0.0.1", port: 0, login: "shop", password: new Secret("password") },
        delays: { callbackMs: 5 },
      });
      gateway = await start();
    });
    after(async () => {
      killExamples();
      await gateway?.stop();
      await sandbox?.close();
      folder.remove();
    });

    /** The gateway, with its state on disk; `at` starts it at the addresses of an earlier one. */
    const start = (at?: Gateway) =>
      startTestGateway({
        ALLOW_VOLATILE: "",
        AUTH_MODE: "none",
        DATA_DIR: join(folder.path, "data"),
        UPSTREAM_URL: sandbox.url,
        UPSTREAM_LOGIN: "shop",
        UPSTREAM_PASSWORD: "password",
        RATE_LIMIT_INITIAL: "50",
        RECONCILE_AFTER: "2s",
        ...(at && {
          PUBLIC_ADDR: new URL(at.publicUrl).host,
          RPC_ADDR: new URL(at.rpcUrl).host,
        }),
      });

    const ordersMade = () => ordersIn(sandbox.url, "shop:password");
    const isWatched = async () => (await scrapeOf(gateway)).sum("watchers", {}) === 1;
    const example = (...args: string[]) =>
      startExample(command.file, [...command.args, ...args], {
        PAYMENTS_GATEWAY_URL: gateway.rpcUrl,
        ...command.env,
      });

    it("pays with 3DS, and goes on watching behind a restart of the gateway", async () => {
      const { seen, exit } = example("pay", "order-3ds");
      const page = (await seen(/^the customer goes to /)).replace("the customer goes to ", "");
      await until(isWatched, "a watch");
      await gateway.stop();
      await seen(/^reconnecting: /);
      gateway = await start(gateway);
      await approve(page);
      const { code, lines } = await exit;
      assert.equal(lines[0], "PENDING");
      assert.match(lines.at(-1) ?? "", paid, lines.join("\n"));
      assert.equal(code, 0);
    });

    it("is not charged twice when it is started again", async () => {
      const { code, lines } = await example("pay", "order-3ds").exit;
      assert.deepEqual(lines, ["the answer to an earlier call", "PAID"]);
      assert.equal(code, 0);
    });

    it("says by the details of an error why it failed", async () => {
      const declined = await example("pay", "order-declined", "4000000000000614").exit;
      assert.deepEqual(declined, { code: 1, lines: ["declined: insufficient_funds"] });
      const invalid = await example("pay", "order-invalid", "4111111111111111", "1e3").exit;
      assert.match(invalid.lines.join("\n"), /^amount: must be a decimal number/);
      assert.equal(invalid.code, 2);
    });

    it("watches a payment whose outcome is unknown, and does not pay again", async () => {
      // Neither answer nor callback comes unless the gateway asks for it.
      const { seen, exit } = example("pay", "order-lost", "4000000000000713");
      await until(async () => (await ordersMade()).includes("order-lost"), "a payment");
      // A gateway that stops tells what it knows to those who wait.
      await gateway.stop();
      await seen(/^the outcome is not known yet$/);
      gateway = await start(gateway);
      const { code, lines } = await exit;
      assert.match(lines.at(-1) ?? "", paid, lines.join("\n"));
      assert.equal(code, 0);
      const orders = await ordersMade();
      assert.equal(orders.filter((order) => order === "order-lost").length, 1);
    });

    it("hands out all events, and later those behind the saved cursor", async () => {
      const cursorFile = join(folder.path, "cursor");
      const first = example("events", cursorFile);
      await first.seen(/^order-lost PAID$/);
      first.child.kill();
      const { lines } = await first.exit;
      assert.equal(lines[0], "order-3ds PENDING");

      await example("pay", "order-later", "4111111111111111").exit;
      const second = example("events", cursorFile);
      await second.seen(/^order-later PAID$/);
      second.child.kill();
      const later = await second.exit;
      assert.ok(!later.lines.includes("order-3ds PENDING"), later.lines.join("\n"));
    });
  });
}

/** By whichever of the two comes first: the service's callback, or the gateway's look behind a restart. */
const paid = /^(CALLBACK|RECONCILIATION) PAID$/;

/**
 * The folder for what a compiler made of the generated code in `<folder>/gen` and of the example.
 * Compilers take longer than all tests here: they run when what they read has changed, or this file.
 */
async function keptFor(language: string, folder: string, example: string): Promise<string> {
  const entries = await readdir(join(folder, "gen"), { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .sort();
  const hash = createHash("sha256");
  for (const file of [import.meta.filename, example, ...files]) {
    hash.update(basename(file)).update(await readFile(file));
  }
  // Not in node_modules, which `npm ci` empties.
  const kept = join(root, ".cache", language, hash.digest("hex").slice(0, 20));
  await mkdir(kept, { recursive: true });
  return kept;
}

function isOnPath(program: string): boolean {
  return (process.env.PATH ?? "").split(delimiter).some((one) => existsSync(join(one, program)));
}

async function run(
  file: string,
  args: readonly string[],
  env: Record<string, string> = {},
  cwd = root,
): Promise<void> {
  await promisify(execFile)(file, args, {
    cwd,
    env: { PATH: process.env.PATH, ...env },
    timeout: 180_000,
  });
}
