import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { describe, it, type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Redis } from "ioredis";
import type { ClientTlsOptions } from "../../src/net/client-tls.ts";
import { ask } from "../../src/redis/ask.ts";
import { connectorTo } from "../../src/redis/connector.ts";
import { Link } from "../../src/redis/link.ts";
import { watchOutages } from "../../src/redis/outages.ts";
import { Sentinels } from "../../src/redis/sentinels.ts";
import { parseRedisUrl } from "../../src/redis/url.ts";
import { createRedisKernel } from "../../src/stores/redis/kernel.ts";
import { listen } from "../listen.ts";
import { closing, ofSuite } from "../of-suite.ts";
import { timeoutMs, until } from "../until.ts";
import { startCluster } from "./cluster.ts";
import { freePort, startRedis, withoutRedis } from "./server.ts";
import { connected, connecting } from "./suite.ts";

describe("a connection to a cluster", { skip: withoutRedis }, () => {
  const cluster = ofSuite(startCluster);

  it("lets the process exit once it is closed, even during a refresh of the slots", async () => {
    // Closes the connection in the middle of its periodic refresh of the slots.
    const source = `
      import { connectRedis } from "./src/redis/connect.ts";
      import { Secret } from "./src/secrets/secret.ts";
      const redis = connectRedis(new Secret(${JSON.stringify(cluster.url)}), () => {});
      await new Promise((resolve) => redis.client.once("ready", resolve));
      const refresh = redis.client.refreshSlotsCache;
      redis.client.refreshSlotsCache = function (...args) {
        refresh.apply(this, args);
        redis.close();
        console.log("closed while it asks");
      };`;
    const child = spawn(process.execPath, ["--input-type=module-typescript", "--eval", source], {
      stdio: ["ignore", "pipe", "inherit"],
      timeout: timeoutMs,
      killSignal: "SIGKILL",
    });
    const exit = new Promise((resolve) =>
      child.once("exit", (code, signal) => resolve(code ?? signal)),
    );
    assert.equal(await text(child.stdout), "closed while it asks\n");
    assert.equal(await exit, 0);
  });
});

test("a listener in a cluster hears of all nodes, and does not press those that refuse it", {
  skip: withoutRedis,
}, async (t) => {
  const cluster = closing(t, await startCluster(3, [["user", "gateway on >secret ~* &* +@all"]]));
  const { nodes } = cluster;
  const all = async (...command: [string, ...string[]]) => {
    for (const node of nodes) await node.command(...command);
  };
  const redis = closing(t, await connected(cluster.url.replaceAll("//", "//gateway:secret@")));
  const subscriber = redis.subscriber();
  const heard = new Set<string>();
  subscriber.on("message", (_, message) => void heard.add(message));
  await until(async () => (await subscriber.subscribe("events")) === 1);
  const hears = async (word: string) => {
    for (const [at, node] of nodes.entries()) {
      await until(async () => {
        await node.command("PUBLISH", "events", `${word} ${at}`);
        return heard.has(`${word} ${at}`);
      });
    }
  };
  await hears("first");
  const connections = async () => {
    const told = await Promise.all(nodes.map((node) => node.command("INFO", "stats")));
    const counts = told.map((info) => /total_connections_received:(\d+)/.exec(String(info))?.[1]);
    return counts.reduce((sum, count) => sum + Number(count), 0);
  };
  await all("ACL", "SETUSER", "gateway", "off");
  await all("CLIENT", "KILL", "USER", "gateway");
  const before = await connections();
  await delay(2_000);
  const made = (await connections()) - before;
  assert.ok(made < 100, `${made} connections`);
  await all("ACL", "SETUSER", "gateway", "on");
  await hears("second");
});

test("a database that the server lacks is not replaced by another one", {
  skip: withoutRedis,
}, async (t) => {
  const server = closing(t, await startRedis());
  const { client, errors } = connecting(t, `${server.url}/99`);
  await until(async () => {
    await assert.rejects(client.set("key", "value"), "no command reaches another database");
    return errors.filter((message) => /DB index/.test(message)).length > 1;
  }, "it tries again");
  assert.equal(await server.command("EXISTS", "key"), 0);
});

test("a server that became a replica is left once, however many writes it refused", {
  skip: withoutRedis,
}, async (t) => {
  const server = closing(t, await startRedis());
  const client = closing(t, await connected(server.url)).client as Redis;
  const { stream } = client;
  let ends = 0;
  const end = stream.end.bind(stream);
  stream.end = () => {
    ends += 1;
    return end();
  };
  await server.command("REPLICAOF", "127.0.0.1", await freePort());
  const closed = once(stream, "close");
  const writes = await Promise.allSettled(Array.from({ length: 20 }, () => client.incr("counter")));
  for (const write of writes) {
    assert.match(write.status === "rejected" ? `${write.reason}` : "stored", /READONLY/);
  }
  await closed;
  assert.equal(ends, 1);
});

/** Where a server listens until the test ends, which does this with each connection. */
async function serving(t: TestContext, serve: (socket: Socket) => unknown) {
  const server = closing(
    t,
    createServer((socket) => void serve(socket.on("error", () => {}))),
  );
  return { host: "127.0.0.1", port: await listen(server) };
}

/** The commands that a piece holds. */
const commandsIn = (piece: Buffer) => String(piece).split(/^\*/m).slice(1);

test("a connection that is closed again and again has one listener for that", async (t) => {
  const Connector = connectorTo({ link: new Link(), tls: undefined, sentinels: undefined });
  const connector = new Connector(await serving(t, () => {}));
  const stream = await connector.connect(() => {});
  const before = stream.listenerCount("close");
  const closed = once(stream, "close");
  for (let n = 0; n < 20; n++) connector.disconnect();
  assert.equal(stream.listenerCount("close") - before, 2, "that of `once` beside it");
  await closed;
});

test("an error says that the connection broke, and names no option of the driver", {
  skip: withoutRedis,
}, async (t) => {
  const server = closing(t, await startRedis());
  const { client } = closing(t, await connected(server.url));
  server.pause();
  const asked = assert.rejects(
    ask(client, () => client.get("key"), 5_000),
    ({ cause }) => cause.message === "the connection to Redis broke",
  );
  await server.kill();
  await asked;
});

test("a server that takes no writes is away", { skip: withoutRedis }, async (t) => {
  const server = closing(t, await startRedis());
  const redis = closing(t, await connected(server.url));
  const told: unknown[] = [];
  const ofRecords = { indexes: [], keepMs: 1_000 };
  const kernel = createRedisKernel({ redis, prefix: "test", retentionMs: 1_000, ofRecords });
  const outages = watchOutages({
    ...{ accounts: ["shop"], probe: (account) => kernel.account(account).probe() },
    onAway: (reason, _, accounts) => void told.push(accounts, `${reason}`),
    onBack: () => void told.push("back"),
  });
  t.after(() => outages.close());
  await server.command("REPLICAOF", "127.0.0.1", await freePort());
  await until(async () => outages.awaySince !== undefined);
  assert.deepEqual(told[0], ["shop"]);
  await server.command("REPLICAOF", "NO", "ONE");
  await until(async () => told.at(-1) === "back");
  await server.command("CONFIG", "SET", "maxmemory", "1");
  await until(async () => outages.awaySince !== undefined);
  await server.command("CONFIG", "SET", "maxmemory", "0");
  await until(async () => told.at(-1) === "back");
  assert.equal(outages.awaySince, undefined);
  assert.deepEqual(await server.command("KEYS", "*"), ["test:{shop}:log"], "it changes nothing");
});

test("an outage is as long as it lasted, though the machine's clock is set meanwhile", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 1_000 });
  let isAway = true;
  const lastedMs = await new Promise<number>((onBack) => {
    const outages = watchOutages({
      accounts: ["shop"],
      async probe() {
        if (isAway) throw new Error("away");
      },
      onAway() {
        isAway = false;
        t.mock.timers.setTime(86_400_000);
        const sinceMs = outages.awaySince?.getTime() ?? 0;
        assert.ok(sinceMs > 86_340_000, `the start moves with the clock: ${sinceMs}`);
      },
      onBack,
    });
    t.after(() => outages.close());
  });
  assert.ok(lastedMs < 60_000, `${lastedMs} ms`);
});

test("Sentinels that refuse connections are not taken for silent, however long", async (t) => {
  const ports = [await freePort(), await freePort()];
  const addresses = ports.map((port) => ({ host: "127.0.0.1", port }));
  const sentinels = closing(t, new Sentinels({ addresses, name: "shop" }));
  // By then they are tried every half second.
  const endMs = performance.now() + 3_000;
  const refused = /^All sentinels are unreachable: .*ECONNREFUSED/;
  while (performance.now() < endMs) {
    await assert.rejects(sentinels.primary(), { message: refused, areAway: true });
    await delay(20);
  }
});

for (const [answer, areAway] of [
  ["NOAUTH Authentication required.", false],
  ["ERR max number of clients reached", false],
  ["ERR No such master with that name", true],
] as const) {
  test(`Sentinels that answer ${answer} are ${areAway ? "" : "not "}away`, async (t) => {
    const address = await serving(t, (socket) =>
      socket.on("data", (commands) => {
        socket.write(`-${answer}\r\n`.repeat(commandsIn(commands).length));
      }),
    );
    const sentinels = closing(t, new Sentinels({ addresses: [address], name: "shop" }));
    const message = `All sentinels are unreachable: ${answer}`;
    await assert.rejects(sentinels.primary(), { message, areAway });
  });
}

test("Sentinels that have no room for one more connection are not away by TLS either", async (t) => {
  // Then they close it in the middle of the handshake.
  const address = await serving(t, (socket) => socket.once("data", () => socket.destroy()));
  const options = { addresses: [address], name: "shop", tls: {} as ClientTlsOptions };
  const sentinels = closing(t, new Sentinels(options));
  const message = /^All sentinels are unreachable: .*(ECONNRESET|disconnected before secure TLS)/;
  await until(() =>
    sentinels.primary().then(
      () => false,
      (error) => message.test(error.message),
    ),
  );
  await assert.rejects(sentinels.primary(), { message, areAway: false });
});

/** A Sentinel that says what the test sets. */
async function startFake(t: TestContext) {
  /** `next` is taken over after the next answer about the primary. */
  const told: { port: string; epoch: number; next?: object; lateMs?: number } = {
    ...{ port: "1", epoch: 1 },
  };
  const array = (...texts: string[]) =>
    [`*${texts.length}`, ...texts.flatMap((text) => [`$${text.length}`, text]), ""].join("\r\n");
  const answerTo = (command: string) => {
    const { port, epoch, next } = told;
    if (/REPLICAS/i.test(command)) return array();
    if (!/MASTER/i.test(command)) return "+OK\r\n";
    Object.assign(told, next);
    if (/GET-MASTER-ADDR/i.test(command)) return array("10.0.0.1", port);
    return array("config-epoch", `${epoch}`, "num-other-sentinels", "0", "flags", "master");
  };
  const address = await serving(t, (socket) =>
    socket.on("data", (commands) => {
      const answers = commandsIn(commands).map(answerTo);
      setTimeout(() => socket.write(answers.join("")), told.lateMs ?? 0);
    }),
  );
  return { told, address };
}

/** Such a Sentinel, and the list of the primaries that were moved to. */
async function startSentinel(t: TestContext) {
  const { told, address } = await startFake(t);
  const moves: string[] = [];
  const onPrimary = (primary: string) => moves.push(primary);
  const options = { addresses: [address], name: "payments", onPrimary };
  const sentinels = closing(t, new Sentinels(options));
  const primaryAt = (epoch: number, port: string) => {
    Object.assign(told, { epoch, port });
    return sentinels.primary();
  };
  return { told, moves, sentinels, primaryAt };
}

/** After so long Sentinels that say otherwise are believed. */
const anewMs = 10_000;

/** Sets the clock by which they are believed ahead. */
function clockOf(t: TestContext) {
  const now = performance.now.bind(performance);
  let aheadMs = 0;
  t.mock.method(performance, "now", () => now() + aheadMs);
  return (ms: number) => {
    aheadMs += ms;
  };
}

test("an answer of an older epoch does not bring back a primary that was replaced", async (t) => {
  const { moves, primaryAt } = await startSentinel(t);
  assert.equal(await primaryAt(2, "2"), "10.0.0.1:2");
  assert.equal(await primaryAt(1, "1"), "10.0.0.1:2");
  assert.equal(await primaryAt(3, "3"), "10.0.0.1:3");
  assert.deepEqual(moves, ["10.0.0.1:3"]);
});

test("Sentinels that were set up anew, and count from the start, are believed after a while", async (t) => {
  const pass = clockOf(t);
  const { moves, sentinels, primaryAt } = await startSentinel(t);
  assert.equal(await primaryAt(7, "2"), "10.0.0.1:2");
  assert.equal(await primaryAt(1, "1"), "10.0.0.1:2");
  assert.equal(await primaryAt(7, "2"), "10.0.0.1:2");
  assert.equal(await primaryAt(1, "3"), "10.0.0.1:2");
  pass(anewMs);
  await until(async () => (await sentinels.primary()) === "10.0.0.1:3");
  assert.equal(await primaryAt(1, "4"), "10.0.0.1:3", "of the same epoch");
  pass(anewMs);
  await until(async () => (await sentinels.primary()) === "10.0.0.1:4");
  assert.equal(await primaryAt(2, "5"), "10.0.0.1:5");
  assert.deepEqual(moves, ["10.0.0.1:3", "10.0.0.1:4", "10.0.0.1:5"]);
});

test("a connection that was opened during a failover is not used, though the old primary answers", async (t) => {
  const { sentinels, primaryAt } = await startSentinel(t);
  const Connector = connectorTo({ link: new Link(), tls: undefined, sentinels });
  await primaryAt(1, "1");
  const connector = new Connector({});
  t.after(() => connector.disconnect());
  await connector.connect(() => {});
  assert.equal(connector.check({ role: "master" }), true);
  await primaryAt(2, "2");
  assert.equal(connector.check({ role: "master" }), false);
});

test("of answers with one epoch that of most Sentinels is believed", async (t) => {
  const pass = clockOf(t);
  const fakes = await Promise.all([startFake(t), startFake(t), startFake(t)]);
  const addresses = fakes.map(({ address }) => address);
  const sentinels = closing(t, new Sentinels({ addresses, name: "payments" }));
  const [wrong, ...others] = fakes.map(({ told }) => told);
  // It answers first.
  Object.assign(wrong!, { port: "9" });
  for (const told of others) told.lateMs = 5;
  assert.equal(await sentinels.primary(), "10.0.0.1:1");
  for (const told of others) told.port = "2";
  assert.equal(await sentinels.primary(), "10.0.0.1:1");
  pass(anewMs);
  await until(async () => (await sentinels.primary()) === "10.0.0.1:2");
});

test("a failover that ends between two answers of a Sentinel is followed", async (t) => {
  const { told, moves, sentinels, primaryAt } = await startSentinel(t);
  assert.equal(await primaryAt(1, "1"), "10.0.0.1:1");
  told.next = { epoch: 2, port: "2" };
  await until(async () => (await sentinels.primary()) === "10.0.0.1:2");
  assert.deepEqual(moves, ["10.0.0.1:2"]);
});

test("the password in the URL of a Sentinel set may have colons, as in that of a server", () => {
  for (const url of [
    "redis+sentinel://user:a:b%40@127.0.0.1/main",
    "redis://user:a:b%40@127.0.0.1",
  ]) {
    const { username, password } = parseRedisUrl(url) ?? {};
    assert.deepEqual([username, password], ["user", "a:b@"], url);
  }
});
