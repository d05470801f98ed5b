import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, test } from "node:test";
import { startSandbox } from "../../sandbox/server.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { openDirectory } from "../../src/stores/sqlite/directory.ts";
import { freePorts } from "../gateway/spawn.ts";
import { serve } from "../listen.ts";
import { closing, ofSuite } from "../of-suite.ts";
import { startRedis, withoutRedis } from "../redis/server.ts";
import { directory } from "../stores/sqlite/directories.ts";
import { tlsFile } from "../tls.ts";
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
  /** Verdict and message of each check of this name, a line for each. */
  const said = (name: string) =>
    checks
      .filter(({ check }) => check === name)
      .map(({ verdict, message }) => `${verdict}: ${message}`)
      .join("\n");
  return { code, ok, said, all: out + err };
}

test("a valid configuration passes, and nothing is created at the upstream", async () => {
  const { code, ok, said } = await check({ PUBLIC_URL: "http://127.0.0.1:9" });
  assert.equal(code, 0);
  assert.equal(ok, true);
  assert.match(said("upstream default"), /^ok: .* accepts the credentials of shop; 50 requests/);
  assert.match(said("configuration"), /^ok: accounts: default; state in memory/);
  assert.match(said("PUBLIC_URL"), /^warning: .*does not answer: /);
  const { payments, payouts } = sandbox.ledger();
  assert.deepEqual([payments.length, payouts.length], [0, 0]);
});

test("wrong credentials, an unreachable upstream and another server are reported as failed", async (t) => {
  const { code, said, all } = await check({ UPSTREAM_PASSWORD: "canary-password" });
  assert.equal(code, 1);
  assert.match(said("upstream default"), /^failed: .* refuses the credentials of shop/);
  assert.ok(!all.includes("canary-password"));
  const away = await check({ UPSTREAM_URL: "http://127.0.0.1:9" });
  assert.match(
    away.said("upstream default"),
    /^failed: .* cannot be reached: nothing listens there \(ECONNREFUSED\)/,
  );
  const page = new URL(
    await serve(
      t,
      createServer((_, response) => response.end("<html>")),
    ),
  );
  page.username = "user";
  page.password = "canary";
  const other = await check({ UPSTREAM_URL: `${page}` });
  assert.equal(other.code, 1);
  assert.match(other.said("upstream default"), /^failed: /);
  assert.ok(!other.all.includes("canary"));
});

test("an Error object shows that the credentials are accepted, unless the service itself fails", async (t) => {
  let code = "invalid_data";
  const service = createServer((_, response) =>
    response.writeHead(code === "invalid_data" ? 400 : 500).end(JSON.stringify({ code })),
  );
  const env = { UPSTREAM_URL: await serve(t, service) };
  assert.match((await check(env)).said("upstream default"), /^ok: .* accepts the credentials/);
  code = "internal_error";
  assert.match((await check(env)).said("upstream default"), /^failed: .* fails: internal_error/);
});

test("a configuration that serve would refuse ends with 78 and the same message", async () => {
  const refused = async (env: Record<string, string>) => {
    const { code, said } = await check(env);
    assert.equal(code, 78);
    return said("configuration");
  };
  assert.match(
    await refused({ UPSTREAM_TIMEOUT: "soon" }),
    /^failed: UPSTREAM_TIMEOUT: got "soon"/,
  );
  const keys = join(dir, "wrong.json");
  writeFileSync(keys, '[{"name": "x", "sha256": "0", "scopes": []}]');
  const env = { AUTH_MODE: "keys", API_KEYS_FILE: keys };
  assert.match(await refused(env), /^failed: API_KEYS_FILE: .*64 hex digits/);
  const tls = { TLS_CERT_FILE: tlsFile("localhost.crt"), TLS_KEY_FILE: tlsFile("elsewhere.key") };
  assert.match(await refused(tls), /^failed: TLS_KEY_FILE: is not the PEM key/);
  const whole = { ...tls, TLS_KEY_FILE: tlsFile("localhost.key"), TLS_CLIENT_CA_FILE: keys };
  assert.match(
    await refused({ ...env, ...whole }),
    /^failed: API_KEYS_FILE: .*\nfailed: TLS_CLIENT_CA_FILE: has no PEM certificate$/,
  );
  const documents = join(dir, "documents.json");
  writeFileSync(documents, '{"one": "{ nowhere }"}');
  const wrong = { env: { ...freePorts, PERSISTED_DOCUMENTS_FILE: documents } };
  const served = await runAlone(["serve"], wrong);
  const checked = await run(["check"], wrong);
  assert.equal(served.code, 78);
  assert.ok(checked.out.trim().endsWith(served.err.trim()));
  writeFileSync(documents, '{"one": "{ _entities(representations: []) { __typename } }"}');
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

test("--offline sends no request", async (t) => {
  let asked = 0;
  const upstream = createServer((_, response) => {
    asked += 1;
    response.end("{}");
  });
  const url = await serve(t, upstream);
  const env = {
    ...{ UPSTREAM_URL: url, PUBLIC_URL: url, AUTH_MODE: "jwt", AUTH_JWKS_URL: `${url}/keys` },
    ...{ AUTH_ISSUER: "i", AUTH_AUDIENCE: "a", REDIS_URL: "redis://127.0.0.1:9" },
  };
  assert.equal((await check(env, "--offline")).code, 0);
  assert.equal(asked, 0);
  const { code, said } = await check(env);
  assert.equal(code, 1);
  assert.ok(asked >= 3);
  assert.match(said("upstream default"), /^failed: .* not as the payments service does/);
  assert.match(
    said("JWT keys"),
    /^failed: AUTH_JWKS_URL cannot be read: the answer is not a JSON Web Key Set/,
  );
  assert.match(said("redis"), /^failed: cannot be reached: nothing listens there \(ECONNREFUSED\)/);
});

test("a key set that is elsewhere is reported: the gateway does not follow there", async (t) => {
  const issuer = createServer(({ url }, response) => {
    if (url === "/jwks") response.writeHead(302, { location: "/keys" }).end();
    else response.end('{"keys":[{"kty":"EC"}]}');
  });
  const url = await serve(t, issuer);
  const of = async (path: string) => {
    const env = { AUTH_MODE: "jwt", AUTH_ISSUER: "i", AUTH_AUDIENCE: "a" };
    return (await check({ ...env, AUTH_JWKS_URL: `${url}${path}` })).said("JWT keys");
  };
  assert.equal(await of("/jwks"), "failed: AUTH_JWKS_URL cannot be read: HTTP 302");
  assert.equal(await of("/keys"), "ok: a key set at AUTH_JWKS_URL");
});

test("Ctrl-C ends the check at once, with 130", async (t) => {
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  const upstream = createServer(() => resolve());
  const child = start(["check"], {
    env: {
      ...freePorts,
      UPSTREAM_URL: await serve(t, upstream),
      ...{ UPSTREAM_LOGIN: "a", UPSTREAM_PASSWORD: "b", AUTH_MODE: "none" },
    },
  });
  const ends = Promise.all([text(child.stdout!), once(child, "close")]);
  await asked;
  child.kill("SIGINT");
  const [said, [code]] = await ends;
  assert.equal(code, 130);
  assert.doesNotMatch(said, /✗/);
});

test("durability, missing replicas and forbidden commands of Redis are reported", {
  skip: withoutRedis,
}, async (t) => {
  const server = closing(t, await startRedis());
  const redis = (url: string, env: Record<string, string> = {}) =>
    check({ REDIS_URL: url, ...env });
  const first = await redis(server.url);
  assert.equal(first.code, 0);
  assert.match(first.said("redis"), /^ok: connected, version \d+\.\d+/);
  assert.match(first.said("redis"), /^warning: .*nothing on disk/m);
  assert.deepEqual(await server.command("KEYS", "*"), [], "nothing is left behind");

  await server.command("CONFIG", "SET", "appendonly", "yes", "appendfsync", "always");
  const lacking = await redis(server.url, { REDIS_MIN_REPLICAS: "1" });
  assert.equal(lacking.code, 1);
  assert.match(lacking.said("redis"), /^ok: append-only file/m);
  assert.match(
    lacking.said("redis"),
    /^failed: a write would not count: REDIS_MIN_REPLICAS is 1, /m,
  );

  const rules = ["on", ">canary-secret", "~pgw:*", "&*", "+@all", "-@stream"];
  await server.command("ACL", "SETUSER", "guest", ...rules);
  const guest = server.url.replace("redis://", "redis://guest:canary-secret@");
  const forbidden = await redis(guest);
  assert.equal(forbidden.code, 1);
  assert.match(
    forbidden.said("redis"),
    /^failed: cannot be used: .*(NOPERM|can't run this command)/,
  );
  const may = (...rights: string[]) => server.command("ACL", "SETUSER", "guest", ...rights);
  await may("+@all", "-subscribe");
  assert.match((await redis(guest)).said("redis"), /^failed: .*subscribe/);
  await may("+@all", "-info");
  assert.match((await redis(guest)).all, /NOPERM.*allow the user all commands/s);
  await may("+@all", "-role");
  assert.equal((await redis(guest)).code, 0);
  const unsure = await redis(guest, { REDIS_MIN_REPLICAS: "all" });
  assert.equal(unsure.code, 1);
  assert.match(unsure.said("redis"), /^failed: a write would not count: .*role/m);
  const wrong = await redis(guest.replace("canary-secret", "canary-wrong"));
  assert.equal(wrong.code, 1);
  assert.match(wrong.said("redis"), /^failed: .*WRONGPASS/);
  for (const { all } of [forbidden, wrong]) assert.ok(!all.includes("canary"));
});

test("a cluster of which no node answers is told as such", async () => {
  const { code, said } = await check({ REDIS_URL: "redis://127.0.0.1:9,redis://127.0.0.1:11" });
  assert.equal(code, 1);
  assert.equal(said("redis"), "failed: cannot be reached: no node of the cluster answers");
});

test("a Redis that is a replica is told as such", { skip: withoutRedis }, async (t) => {
  const primary = closing(t, await startRedis());
  const replica = closing(t, await startRedis([["replicaof", `127.0.0.1 ${primary.port}`]]));
  const { code, said } = await check({ REDIS_URL: replica.url });
  assert.equal(code, 1);
  assert.match(said("redis"), /^failed: cannot be used: .*read only replica/);
});

test("the database in DATA_DIR is checked, and the process that has it open is named", async (t) => {
  const data = join(directory(t), "data");
  const look = () => check({ DATA_DIR: data });
  const before = await look();
  assert.equal(before.code, 0);
  assert.match(before.said("DATA_DIR"), /^ok: not there yet.*; [\d,]+ MiB are free/);
  assert.equal(existsSync(data), false, "it makes nothing");
  const { close } = openDirectory(data);
  const held = await look();
  assert.match(held.said("DATA_DIR"), new RegExp(`^warning: .*the pid ${process.pid}$`));
  close();
  assert.match((await look()).said("DATA_DIR"), /^ok: \d+ MiB, schema version \d+, every page/);
  writeFileSync(join(data, "gateway.sqlite"), "no database, but long enough to be one".repeat(100));
  const broken = await look();
  assert.equal(broken.code, 1);
  assert.match(
    broken.said("DATA_DIR"),
    /^failed: gateway\.sqlite is damaged or not a SQLite database/,
  );
});
