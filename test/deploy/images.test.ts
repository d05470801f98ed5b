import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFile, cp, readFile, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { promisify } from "node:util";
import { parseDocument } from "yaml";
import { readConfig } from "../../src/config/config.ts";
import { freePorts, killSpawned, spawnCli } from "../gateway/spawn.ts";
import { serve } from "../listen.ts";
import { directory } from "../stores/sqlite/directories.ts";

const root = join(import.meta.dirname, "../..");
const text = (name: string) => readFile(join(root, name), "utf8");
const dockerfile = await text("Dockerfile");
/** Its last stage, which is the image. */
const final = dockerfile.slice(dockerfile.lastIndexOf("\nFROM "));

describe("the Dockerfile", () => {
  it("runs as an unprivileged user, in exec form so that signals arrive", () => {
    assert.match(final, /^USER \d+:\d+$/m);
    assert.doesNotMatch(final, /^USER (root|0)/m);
    assert.match(final, /^ENTRYPOINT \["/m);
    assert.match(final, /^CMD \["/m);
  });

  it("installs with the manifest of each package of the workspace", async () => {
    const [before = ""] = dockerfile.split("RUN npm ci");
    for (const folder of JSON.parse(await text("package.json")).workspaces) {
      assert.ok(before.includes(`COPY ${folder}/package.json ${folder}/\n`), folder);
    }
  });

  it("starts from the files that it copies, without packages, and has their licenses", async (t) => {
    const app = directory(t);
    const built = process.env.BUILT_COMMAND_LINE;
    const build = [join(root, "scripts/build.ts"), join(app, "dist")];
    if (built) await cp(dirname(built), join(app, "dist"), { recursive: true });
    else await promisify(execFile)(process.execPath, build);
    await copyFile(join(root, "package.json"), join(app, "package.json"));
    const gateway = spawnCli(["serve"], freePorts, join(app, "dist/cli.js"));
    t.after(killSpawned);
    const { admin = "", public: publicUrl = "", rpc = "" } = await gateway.ready;
    assert.equal((await fetch(`${admin}/healthz`)).status, 200);
    const page = await fetch(`${publicUrl}/graphql`, { headers: { accept: "text/html" } });
    assert.match(await page.text(), /graphiql/i);
    const paid = await fetch(`${rpc}/payments.v1.PaymentService/GetPayment`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ external_id: "none-of-ours" }),
    });
    assert.equal(paid.status, 404, await paid.text());
    gateway.child.kill("SIGTERM");
    assert.deepEqual(await gateway.exit, [0, null]);

    const { dependencies } = JSON.parse(await text("package.json"));
    const licenses = await readFile(join(app, "dist/third-party-licenses.txt"), "utf8");
    for (const name of Object.keys(dependencies)) assert.ok(licenses.includes(`${name} `), name);
    assert.match(licenses, /^@bufbuild\/protobuf .*Apache-2\.0/m);
    assert.match(licenses, /Apache License\n +Version 2\.0/, "the text, which no package brings");
  });

  it("is labelled with the name, the description and the version of package.json", async () => {
    const { name, description, version } = JSON.parse(await text("package.json"));
    const [, label = ""] = /^LABEL ((?:.*\\\n)*.*)$/m.exec(final) ?? [];
    const args = Object.fromEntries(
      [...final.matchAll(/^ARG (\w+)=(.*)$/gm)].map(([, arg, value]) => [arg, value]),
    );
    const labels = Object.fromEntries(
      [...label.matchAll(/org\.opencontainers\.image\.(\w+)="(.*)"/g)].map(([, key, value]) => [
        key,
        value?.replace(/^\$(\w+)$/, (_, arg) => args[arg] ?? ""),
      ]),
    );
    assert.deepEqual(labels, { title: name, description, version, revision: "unknown" });
  });

  it("has a .dockerignore that excludes all but the named files", async () => {
    const ignore = (await text(".dockerignore")).split("\n").filter((l) => !l.startsWith("#"));
    assert.equal(ignore[0], "*", "everything is held back unless it is named");
    const allowed = ignore.filter((line) => line.startsWith("!")).map((line) => line.slice(1));
    const copied = ["package.json", "package-lock.json", "src", "devtools", "sandbox", "console"];
    for (const name of [...copied, "scripts"]) assert.ok(allowed.includes(name), name);
    assert.ok(!allowed.some((name) => name.includes("*") && !name.startsWith("tsconfig")));
  });

  it("builds from the files that .dockerignore lets through", async (t) => {
    const context = directory(t);
    for (const [, name = ""] of (await text(".dockerignore")).matchAll(/^!(.*)$/gm)) {
      await cp(join(root, name), join(context, name), { recursive: true });
    }
    await symlink(join(root, "node_modules"), join(context, "node_modules"));
    await promisify(execFile)("npm", ["run", "build"], { cwd: context });
    await readFile(join(context, "dist/cli.js"));
  });

  it("has a health check that fails without a gateway", async (t) => {
    const [, command = ""] = /HEALTHCHECK .*\\\n\s*CMD (\[.*\])/.exec(dockerfile) ?? [];
    const [, ...args] = JSON.parse(command) as string[];
    const probe = (address: string) =>
      promisify(execFile)(process.execPath, args, {
        timeout: 60_000,
        env: { ...process.env, ADMIN_ADDR: address },
      });
    // Nothing listens on port 1: the probe must end with 1.
    await assert.rejects(probe("127.0.0.1:1"), { code: 1 });
    const healthy = createServer((_, response) => response.end());
    const { port } = new URL(await serve(t, healthy));
    // The image listens on all addresses, unless ADMIN_ADDR is set to another one.
    for (const host of ["0.0.0.0", "127.0.0.1"]) await probe(`${host}:${port}`);
  });
});

interface Service {
  environment?: Record<string, string>;
  ports?: string[];
  command?: string[];
  read_only?: boolean;
  stop_grace_period?: string;
}

describe("compose.yaml", () => {
  const services = async () => {
    const document = parseDocument(await text("compose.yaml"));
    assert.deepEqual(document.errors, []);
    return (document.toJS() as { services: Record<string, Service> }).services;
  };

  it("gives an environment that the gateway accepts, with a sandbox inside", async () => {
    const { gateway } = await services();
    const wide = { PUBLIC_ADDR: "0.0.0.0:4000", RPC_ADDR: "0.0.0.0:4001" };
    const environmentWith = (adminKey: string) =>
      Object.fromEntries(
        Object.entries(gateway?.environment ?? {}).map(([name, value]) => [
          name,
          value === "\u0024{ADMIN_KEY:-}" ? adminKey : value,
        ]),
      );
    const config = readConfig({ ...wide, ...environmentWith("") });
    assert.equal(config.adminKey, undefined);
    assert.ok(readConfig({ ...wide, ...environmentWith("k".repeat(32)) }).adminKey);
    assert.ok(config.sandboxAddress);
    assert.ok(config.redis);
    const graceMs = Number.parseInt(gateway?.stop_grace_period ?? "", 10) * 1_000;
    assert.ok(graceMs > config.shutdown.timeoutMs);
  });

  it("uses only what docker-compose of Debian (1.29) supports", async () => {
    const { name, version, services, volumes, ...others } = parseDocument(
      await text("compose.yaml"),
    ).toJS();
    assert.deepEqual([name, version, others], [undefined, undefined, {}]);
    assert.ok(services && volumes);
  });

  it("publishes its ports only on loopback, since its callers need no keys", async () => {
    for (const [name, { ports = [] }] of Object.entries(await services())) {
      for (const port of ports) assert.match(port, /^127\.0\.0\.1:/, name);
    }
  });

  it("configures Redis to keep every acknowledged write", async () => {
    const { redis } = await services();
    const command = redis?.command?.join(" ") ?? "";
    assert.match(command, /--appendonly yes/);
    assert.match(command, /--appendfsync always/);
    assert.match(command, /--maxmemory-policy noeviction/);
  });
});

describe("the systemd unit", () => {
  it("gives an environment that the gateway accepts, and time for its drain", async (t) => {
    const unit = await text("deploy/systemd/payments-gateway.service");
    const credentials = directory(t);
    const environment: Record<string, string> = {
      // What an operator writes to /etc/payments-gateway.env.
      ...{ UPSTREAM_URL: "https://api.example", UPSTREAM_LOGIN: "shop" },
      PUBLIC_URL: "https://pay.shop.example",
    };
    for (const [, name = ""] of unit.matchAll(/^LoadCredential=([^:]+):/gm)) {
      await writeFile(join(credentials, name), name.endsWith(".json") ? "[]" : "s".repeat(40));
    }
    for (const [, line = ""] of unit.matchAll(/^Environment=(.*)$/gm)) {
      for (const pair of line.split(" ")) {
        const [name = "", value = ""] = pair.split("=", 2);
        environment[name] = value.replace("%d", credentials).replace("%S", "/var/lib");
      }
    }
    const config = readConfig(environment);
    assert.equal(config.dataDirectory, "/var/lib/payments-gateway");
    assert.deepEqual([...config.auth.modes], ["keys"]);
    const stop = /^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1];
    assert.ok(Number(stop) * 1_000 > config.shutdown.timeoutMs);
    assert.match(unit, /^RestartPreventExitStatus=78$/m);
    assert.match(unit, /^ExecStart=.* --max-semi-space-size=16 .*dist\/cli\.js serve$/m);
  });
});
