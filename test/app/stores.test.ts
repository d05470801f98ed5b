import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { openStores } from "../../src/app/open-stores.ts";
import { readConfig } from "../../src/config/config.ts";
import { deriveKeyring } from "../../src/secrets/keyring.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { redisLayout } from "../../src/stores/redis/import.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { freePorts, spawnCli } from "../gateway/spawn.ts";
import { newCall } from "../ledger/new-call.ts";
import { logRecords } from "../log-records.ts";
import { closing } from "../of-suite.ts";
import { ownerOf, startCluster } from "../redis/cluster.ts";
import { startSentinelSet } from "../redis/sentinel.ts";
import { startRedis, withoutRedis } from "../redis/server.ts";
import { until } from "../until.ts";

async function open(t: TestContext, env: Record<string, string>) {
  const { records, log } = logRecords("debug");
  const keyrings = new Map([["default", await deriveKeyring("default", [new Secret("password")])]]);
  const { report } = await createTelemetry(log, []);
  const stores = closing(t, await openStores(readConfig(env), keyrings, report, log));
  return { records, stores };
}

test("warns at start that a Redis failover may lose writes that no replica has to hold", async (t) => {
  const warned = async (url: string, minReplicas = "0") => {
    const { records } = await open(t, { REDIS_URL: url, REDIS_MIN_REPLICAS: minReplicas });
    return records.some(({ msg }) => /REDIS_MIN_REPLICAS is 0: a failover/.test(String(msg)));
  };
  const [sentinel, cluster] = [
    "redis+sentinel://127.0.0.1:1/x",
    "redis://127.0.0.1:1,redis://[::1]:1",
  ];
  assert.equal(await warned(sentinel), true);
  assert.equal(await warned(cluster), true);
  assert.equal(await warned(sentinel, "1"), false);
  assert.equal(await warned("redis://127.0.0.1:1"), false);
});

for (const [name, url] of [
  ["a server", "redis://127.0.0.1:1"],
  ["a cluster", "redis://127.0.0.1:1,redis://[::1]:1"],
  ["Sentinels", "redis+sentinel://127.0.0.1:1,127.0.0.1:2/x"],
] as const) {
  test(`a gateway starts while ${name} of Redis cannot be reached`, async () => {
    // In a process of its own: here the test itself would keep it alive while it waits for Redis.
    const { child, ready, exit } = spawnCli(["serve"], { ...freePorts, REDIS_URL: url });
    await ready;
    child.kill();
    assert.deepEqual(await exit, [0, null]);
  });
}

test("says at start and on /readyz that the replicas do not fit REDIS_MIN_REPLICAS, or lag", {
  skip: withoutRedis,
}, async (t) => {
  const redis = closing(t, await startRedis([["repl-diskless-sync-delay", "0"]]));
  const replicaof: [string, string][] = [["replicaof", `127.0.0.1 ${redis.port}`]];
  const replicas = await Promise.all([startRedis(replicaof), startRedis(replicaof)]);
  for (const replica of replicas) {
    t.after(() => replica.close());
    await until(async () =>
      String(await replica.command("INFO", "replication")).includes("master_link_status:up"),
    );
  }
  const opened = async (minReplicas: string) => {
    const { records, stores } = await open(t, {
      REDIS_URL: redis.url,
      REDIS_MIN_REPLICAS: minReplicas,
    });
    await until(async () => stores.redisHealth?.().replicas === 2);
    return {
      stores,
      warned: records.filter(({ msg }) => /replicas are connected/.test(String(msg))).length,
      health: stores.redisHealth?.(),
    };
  };
  const away = ({ stores }: Awaited<ReturnType<typeof opened>>) =>
    until(async () => stores.redisHealth?.().status === "away");
  const one = await opened("1");
  assert.equal(one.warned, 1);
  assert.match(one.health?.warning ?? "", /^REDIS_MIN_REPLICAS is 1, and 2 replicas are connected/);
  const three = await opened("3");
  assert.equal(three.warned, 1);
  assert.match(three.health?.warning ?? "", /2 replicas are connected: nothing counts as stored/);
  await away(three);
  for (const enough of ["2", "all"]) {
    const { warned, health } = await opened(enough);
    assert.deepEqual([warned, health], [0, { status: "up", replicas: 2, warning: undefined }]);
  }
  const all = await opened("all");
  replicas[0]?.pause();
  await away(all);
  replicas[0]?.resume();
  await until(async () => all.stores.redisHealth?.().status === "up");
});

test("logs why the store is out of reach", { skip: withoutRedis }, async (t) => {
  const redis = closing(t, await startRedis());
  const { records, stores } = await open(t, { REDIS_URL: redis.url });
  const begin = (externalId: string) => stores.ledger.begin("default", newCall({ externalId }));
  await until(async () => (await begin("probe")) && records.length > 0);
  await redis.command("CONFIG", "SET", "maxmemory", "1");
  await assert.rejects(begin("order"), { code: "UNAVAILABLE" });
  const told = records.findLast(({ state }) => state === "alone");
  assert.match(String(told?.msg), /^cannot write to Redis about calls that move money: /);
  assert.match(String(told?.reason), /OOM/);
});

test("what the driver of Redis warns of is in the log", { skip: withoutRedis }, async (t) => {
  const redis = closing(t, await startRedis());
  await redis.command("ACL", "SETUSER", "guest", "on", ">pass", "~*", "&*", "+@all", "-info");
  const env = { ...freePorts, REDIS_URL: `redis://guest:pass@127.0.0.1:${redis.port}` };
  const { child, ready, exit, errors, lines } = spawnCli(["serve"], env);
  await ready;
  child.kill();
  await exit;
  assert.deepEqual(errors, []);
  assert.ok(lines.some((line) => /INFO command fails/.test(JSON.parse(line).msg)));
});

test("a Redis prefix with state in another layout is refused, with what to do", {
  skip: withoutRedis,
}, async (t) => {
  const server = closing(t, await startRedis());
  const env = { REDIS_URL: server.url, REDIS_PREFIX: "shop" };
  await server.command("HSET", "former:{default}:log", "epoch", "00000000");
  const { exit, errors } = spawnCli(["serve"], { ...freePorts, ...env, REDIS_PREFIX: "former" });
  assert.deepEqual(await exit, [78, null], errors.join("\n"));
  assert.match(
    errors.join("\n"),
    /^REDIS_PREFIX: "former": .* layout 1, .* set another REDIS_PREFIX/,
  );
  const { stores } = await open(t, env);
  await until(async () => (await stores.ledger.cursorBefore("default", 1)) !== "");
  assert.equal(await server.command("HGET", "shop:{default}:log", "layout"), redisLayout);
  await open(t, env);
});

test("state that gets another layout under a running gateway is not used", {
  skip: withoutRedis,
}, async (t) => {
  const server = closing(t, await startRedis());
  const { stores, records } = await open(t, { REDIS_URL: server.url });
  const begin = (externalId: string) => stores.ledger.begin("default", newCall({ externalId }));
  await until(async () => begin("first"));
  const before = await server.command("KEYS", "*record*");
  await server.command("HSET", "pgw:{default}:log", "layout", "99");
  await assert.rejects(begin("second"), { code: "UNAVAILABLE" });
  await assert.rejects(stores.ledger.cursorBefore("default", 1), {
    code: "UNAVAILABLE",
  });
  assert.deepEqual(await server.command("KEYS", "*record*"), before);
  await until(async () => stores.redisHealth?.().status === "away");
  const { reason } = records.findLast(({ msg }) => /^Redis is away/.test(String(msg))) ?? {};
  assert.match(
    String(reason),
    /its state is in layout 99, and this gateway reads layout \d+ alone/,
  );
});

test("Redis is away while a cluster moves the slot of an account, and the log says so", {
  skip: withoutRedis,
}, async (t) => {
  const cluster = closing(t, await startCluster(2));
  const { stores, records } = await open(t, {
    REDIS_URL: cluster.url,
    REDIS_MIN_REPLICAS: "0",
  });
  await until(async () => stores.ledger.begin("default", newCall({ externalId: "first" })));
  const key = "pgw:{default}:log";
  const owner = await ownerOf(cluster, key);
  const [from, to] = owner === 0 ? cluster.nodes : cluster.nodes.toReversed();
  const slot = Number(await from?.command("CLUSTER", "KEYSLOT", key));
  const [fromId, toId] = await Promise.all(
    [from, to].map(async (node) => String(await node?.command("CLUSTER", "MYID"))),
  );
  const is = (status: string) => until(async () => stores.redisHealth?.().status === status);
  const reason = () => records.findLast(({ msg }) => /^Redis is away/.test(String(msg)))?.reason;
  // On a busy machine it may be away because it is late.
  await until(async () => {
    await to?.command("CLUSTER", "SETSLOT", slot, "IMPORTING", `${fromId}`);
    await from?.command("CLUSTER", "SETSLOT", slot, "MIGRATING", `${toId}`);
    await is("away");
    await from?.command("CLUSTER", "SETSLOT", slot, "STABLE");
    await is("up");
    return /TRYAGAIN|Too many Cluster redirections/.test(String(reason()));
  });
});

test("Redis is away while no majority of its Sentinels answers, and the log says so", {
  skip: withoutRedis,
}, async (t) => {
  const set = closing(t, await startSentinelSet());
  const { stores, records } = await open(t, { REDIS_URL: set.url });
  await until(async () => stores.ledger.begin("default", newCall({ externalId: "first" })));
  await Promise.all(set.sentinels.slice(1).map((sentinel) => sentinel.kill()));
  await until(async () => stores.redisHealth?.().status === "away");
  const told = records.filter(({ msg }) => /^Redis is away/.test(String(msg)));
  assert.match(String(told.at(-1)?.reason), /1 of 3 Sentinels answer/);
  await Promise.all(set.sentinels.slice(1).map((sentinel) => sentinel.start()));
  await until(async () => stores.redisHealth?.().status === "up");
});
