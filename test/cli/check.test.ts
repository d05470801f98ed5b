import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, describe, test } from "node:test";
import { startSandbox } from "../../sandbox/server.ts";
import { checkTls } from "../../src/cli/check-surroundings.ts";
import { readConfig } from "../../src/config/config.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { openDirectory } from "../../src/stores/sqlite/directory.ts";
import { freePorts } from "../gateway/spawn.ts";
import { listen } from "../listen.ts";
import { ofSuite } from "../of-suite.ts";
import { startRedis, withoutRedis } from "../redis/server.ts";
import { directory } from "../stores/sqlite/directories.ts";
import { run } from "./resident.ts";
import { run as runAlone, start } from "./run.ts";

const sandbox = ofSuite(() =>
  startSandbox({ host: "127.0.0.1", port: 0, login: "shop", password: new Secret("s3cret") }),
);
const dir = directory({ after });

interface Report {
  ok: boolean;
  checks: { check: string; verdict: string; message: string; advice?: string }[];
}

/** Runs `check` in the environment of a deployment with the sandbox upstream, changed by `env`. */
async function check(env: Record<string, string> = {}, ...args: string[]) {
  const upstream = {
    UPSTREAM_URL: sandbox.url,
    UPSTREAM_LOGIN: "shop",
    UPSTREAM_PASSWORD: "s3cret",
  };
  const { code, out, err } = await run(["check", "--json", ...args], {
    env: { ...freePorts, ...upstream, AUTH_MODE: "none", ...env },
  });
  const { ok, checks } = JSON.parse(out) as Report;
  const found = Object.fromEntries(
    checks.map(({ check, verdict, message }) => [check, `${verdict}: ${message}`]),
  );
  return { code, ok, found, all: out + err };
}

test("a valid configuration passes, and nothing is created at the upstream", async () => {
  const { code, ok, found } = await check({ PUBLIC_URL: "http://127.0.0.1:9" });
  assert.equal(code, 0);
  assert.equal(ok, true);
  assert.match(
    found["upstream default"] ?? "",
    /^ok: .* accepts the credentials of shop; 50 requests/,
  );
  assert.match(found.configuration ?? "", /^ok: accounts: default; state in memory/);
  assert.match(found.state ?? "", /^warning: ALLOW_VOLATILE/);
  assert.match(found.PUBLIC_URL ?? "", /^warning: .*does not answer from here/);
  const { payments, payouts } = sandbox.ledger();
  assert.deepEqual([payments.length, payouts.length], [0, 0]);
});

test("wrong credentials, an unreachable upstream and another server are reported as failed", async () => {
  const { code, found, all } = await check({ UPSTREAM_PASSWORD: "canary-password" });
  assert.equal(code, 1);
  assert.match(found["upstream default"] ?? "", /^failed: .* refuses the credentials of shop/);
  assert.ok(!all.includes("canary-password"));
  const away = await check({ UPSTREAM_URL: "http://127.0.0.1:9" });
  assert.match(
    away.found["upstream default"] ?? "",
    /^failed: .* cannot be reached: nothing listens there \(ECONNREFUSED\)/,
  );
  const page = createServer((_, response) => response.end("<html>"));
  const pagePort = await listen(page);
  const other = await check({
    UPSTREAM_URL: `http://user:canary@127.0.0.1:${pagePort}`,
  });
  page.close();
  assert.equal(other.code, 1);
  assert.match(other.found["upstream default"] ?? "", /^failed: /);
  assert.ok(!other.all.includes("canary"));
});

test("a configuration that serve would refuse ends with 78 and the same message", async () => {
  const refused = async (env: Record<string, string>) => {
    const { code, found } = await check(env);
    assert.equal(code, 78);
    return found.configuration ?? "";
  };
  assert.match(
    await refused({ UPSTREAM_TIMEOUT: "soon" }),
    /^failed: UPSTREAM_TIMEOUT: got "soon"/,
  );
  const keys = join(dir, "wrong.json");
  await writeFile(keys, '[{"name": "x", "sha256": "0", "scopes": []}]');
  const env = { AUTH_MODE: "keys", API_KEYS_FILE: keys };
  assert.match(await refused(env), /^failed: API_KEYS_FILE: .*64 hex digits/);
  const documents = join(dir, "documents.json");
  await writeFile(documents, '{"one": "{ nowhere }"}');
  const serve = { ...freePorts, PERSISTED_DOCUMENTS_FILE: documents };
  const served = await runAlone(["serve"], { env: serve });
  const checked = await run(["check"], { env: serve });
  assert.equal(served.code, 78);
  assert.ok(checked.out.trim().endsWith(served.err.trim()));
  await writeFile(documents, '{"one": "{ _entities(representations: []) { __typename } }"}');
  const subgraph = { GRAPHQL_SUBGRAPH: "true", PERSISTED_DOCUMENTS_FILE: documents };
  const offline = { env: { ...freePorts, ...subgraph } };
  assert.equal((await run(["check", "--offline"], offline)).code, 0);
});

test("all mistakes and misspelt variables are told, each as a check", async () => {
  const env = { UPSTREAM_TIMEOUT: "soon", LOG_LEVEL: "loud", HEARTBEAT_INTERVALL: "1s" };
  const { code, out } = await run(["check", "--json"], { env: { ...freePorts, ...env } });
  assert.equal(code, 78);
  const { checks } = JSON.parse(out) as Report;
  assert.deepEqual(
    checks.map(({ check, verdict, message }) => [check, verdict, message.split(":")[0]]),
    [
      ["configuration", "warning", "HEARTBEAT_INTERVALL"],
      ["configuration", "failed", "UPSTREAM_TIMEOUT"],
      ["configuration", "failed", "LOG_LEVEL"],
    ],
  );
});

test("--offline sends no request", async () => {
  let asked = 0;
  const upstream = createServer((_, response) => {
    asked += 1;
    response.end("{}");
  });
  const url = `http://127.0.0.1:${await listen(upstream)}`;
  const env = {
    ...{ UPSTREAM_URL: url, PUBLIC_URL: url, AUTH_MODE: "jwt", AUTH_JWKS_URL: `${url}/keys` },
    ...{ AUTH_ISSUER: "i", AUTH_AUDIENCE: "a", REDIS_URL: "redis://127.0.0.1:9" },
  };
  assert.equal((await check(env, "--offline")).code, 0);
  assert.equal(asked, 0);
  const { code, found } = await check(env);
  upstream.close();
  assert.equal(code, 1);
  assert.ok(asked >= 3);
  assert.match(found["upstream default"] ?? "", /^failed: .* not as the payments service does/);
  assert.match(found["JWT keys"] ?? "", /^failed: AUTH_JWKS_URL has no public keys/);
  assert.match(
    found.redis ?? "",
    /^failed: cannot be reached: nothing listens there \(ECONNREFUSED\)/,
  );
});

test("Ctrl-C ends the check at once, with 130", async () => {
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  const upstream = createServer(() => resolve());
  const upstreamPort = await listen(upstream);
  const child = start(["check"], {
    env: {
      ...freePorts,
      UPSTREAM_URL: `http://127.0.0.1:${upstreamPort}`,
      ...{ UPSTREAM_LOGIN: "a", UPSTREAM_PASSWORD: "b", AUTH_MODE: "none" },
    },
  });
  const closed = once(child, "close");
  const said = text(child.stdout!);
  await asked;
  child.kill("SIGINT");
  assert.deepEqual(await closed, [130, null]);
  assert.doesNotMatch(await said, /✗/);
  upstream.close();
  upstream.closeAllConnections();
});

test("a certificate that expires or does not match its key is reported", async () => {
  const file = (name: string) =>
    new URL(`../fixtures/tls/localhost.${name}`, import.meta.url).pathname;
  const env = { ...freePorts, TLS_CERT_FILE: file("crt"), TLS_KEY_FILE: file("key") };
  const config = readConfig(env);
  const { validTo } = new (await import("node:crypto")).X509Certificate(
    await readFile(file("crt")),
  );
  const at = (days: number) => new Date(Date.parse(validTo) + days * 86_400_000);
  assert.equal(checkTls(config, at(-40)).verdict, "ok");
  assert.equal(checkTls(config, at(-10)).verdict, "warning");
  assert.match(checkTls(config, at(1)).message, /expired on/);
  const { generateKeyPairSync } = await import("node:crypto");
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const key = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const keyFile = join(dir, "other.key");
  await writeFile(keyFile, key);
  const other = { ...config, tls: { certFile: file("crt"), keyFile } };
  assert.match(checkTls(other, at(-40)).message, /TLS_KEY_FILE is not the key/);
  const rubbish = { ...config, tls: { certFile: keyFile, keyFile } };
  assert.equal(checkTls(rubbish).verdict, "failed");
});

describe("with Redis", { skip: withoutRedis, timeout: 60_000 }, () => {
  test("reports durability, missing replicas and forbidden commands", async () => {
    const server = await startRedis();
    try {
      const redis = (url: string, env: Record<string, string> = {}) =>
        check({ REDIS_URL: url, ...env });
      const first = await redis(server.url);
      assert.equal(first.code, 0);
      assert.match(first.found.redis ?? "", /^ok: connected, version \d+\.\d+/);
      assert.match(first.found["redis durability"] ?? "", /^warning: .*nothing on disk/);
      assert.match(first.found["redis scripts"] ?? "", /^ok/);
      assert.deepEqual(await server.command("KEYS", "*"), [], "nothing is left behind");

      await server.command("CONFIG", "SET", "appendonly", "yes", "appendfsync", "always");
      const lacking = await redis(server.url, { REDIS_MIN_REPLICAS: "1" });
      assert.equal(lacking.code, 1);
      assert.match(lacking.found["redis durability"] ?? "", /^ok/);
      assert.match(lacking.found["redis replicas"] ?? "", /^failed: 0 connected, and REDIS_MIN_R/);

      const rules = ["on", ">canary-secret", "~pgw:*", "&*", "+@all", "-xadd"];
      await server.command("ACL", "SETUSER", "guest", ...rules);
      const guest = server.url.replace("redis://", "redis://guest:canary-secret@");
      const forbidden = await redis(guest);
      assert.equal(forbidden.code, 1);
      assert.match(
        forbidden.found["redis scripts"] ?? "",
        /^failed: cannot be run: .*(NOPERM|can't run this command)/,
      );
      const wrong = await redis(guest.replace("canary-secret", "canary-wrong"));
      assert.equal(wrong.code, 1);
      assert.match(wrong.found.redis ?? "", /^failed: .*WRONGPASS/);
      for (const { all } of [forbidden, wrong]) assert.ok(!all.includes("canary"));
    } finally {
      await server.close();
    }
  });
});

test("the database in DATA_DIR is checked, and the process that has it open is named", async (t) => {
  const data = join(directory(t), "data");
  const look = async () => {
    const { code, all } = await check({ DATA_DIR: data });
    const { checks } = JSON.parse(all) as Report;
    const found = checks.filter((one) => one.check === "DATA_DIR");
    return { code, told: found.map(({ verdict, message }) => `${verdict}: ${message}`) };
  };
  const before = await look();
  assert.equal(before.code, 0);
  assert.match(before.told.join("\n"), /^ok: not there yet.*\n(ok|warning): [\d,]+ MiB are free/);
  assert.equal(existsSync(data), false, "it makes nothing");
  const { close } = openDirectory(data);
  const held = await look();
  assert.match(held.told[0] ?? "", new RegExp(`^warning: .*the pid ${process.pid}$`));
  close();
  assert.match((await look()).told[0] ?? "", /^ok: \d+ MiB, schema version \d+, every page/);
  writeFileSync(join(data, "gateway.sqlite"), "no database, but long enough to be one".repeat(100));
  const broken = await look();
  assert.equal(broken.code, 1);
  assert.match(
    broken.told[0] ?? "",
    /^failed: gateway\.sqlite is damaged or not a SQLite database/,
  );
});
