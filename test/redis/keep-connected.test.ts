import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { Cluster, Redis } from "ioredis";
import type { RedisClient } from "../../src/redis/connect.ts";
import { keepConnected } from "../../src/redis/keep-connected.ts";
import { reportTo } from "../../src/report.ts";
import { closing, ofSuite } from "../of-suite.ts";
import { until } from "../until.ts";
import { startCluster } from "./cluster.ts";
import { startSentinelSet } from "./sentinel.ts";
import { freePort, startRedis, withoutRedis } from "./server.ts";
import { connecting } from "./suite.ts";

/** A client that is kept connected; its driver gives up at once. */
function kept(t: TestContext, port: number): Redis {
  const client = new Redis(port, "127.0.0.1", { retryStrategy: () => null });
  client.on("error", () => {});
  keepConnected(client);
  t.after(() => client.disconnect());
  return client;
}

const endOf = (client: Redis) => new Promise((resolve) => client.once("end", resolve));
const answers = (client: RedisClient) => until(async () => (await client.ping()) === "PONG");

describe("connections to Redis", { skip: withoutRedis }, () => {
  it("all find the new primary when the old one is killed and a Sentinel is frozen", async (t) => {
    const doomed = closing(t, await startSentinelSet());
    const all = Array.from({ length: 30 }, () => connecting(t, doomed.url));
    await Promise.all(all.map(({ client }) => answers(client)));
    const before = await doomed.masterPort();
    doomed.sentinels[0]?.pause();
    await doomed.servers.find(({ port }) => port === before)?.kill();
    await Promise.all(
      all.map(({ client }) =>
        until(async () => (await client.set("key", "value")) === "OK" && client.status === "ready"),
      ),
    );
  });

  const set = ofSuite(startSentinelSet);

  it("move to the primary that Sentinel names, even from one that still serves", async (t) => {
    let failovers = 0;
    const report = reportTo({ redisFailover: () => void failovers++ });
    const redis = connecting(t, set.url, { report });
    const dedicated = redis.dedicated();
    t.after(() => dedicated.disconnect());
    await Promise.all([answers(redis.client), answers(dedicated)]);
    await set.sentinels[1]?.command("SENTINEL", "FAILOVER", "payments");
    await until(async () => failovers >= 1);
    for (const client of [redis.client, dedicated]) {
      await until(async () => {
        const info = await (client as Redis).info("server");
        return info.includes(`tcp_port:${await set.masterPort()}`);
      });
    }
  });

  it("report no error while one Sentinel answers, and the cause when none does", async (t) => {
    const dead = await freePort();
    const url = set.url.replace("redis+sentinel://", `redis+sentinel://127.0.0.1:${dead},`);
    const redis = connecting(t, url);
    await answers(redis.client);
    await redis.sentinels?.views();
    assert.equal(redis.errors.length, 0, redis.errors.join("\n"));
    const { errors } = connecting(t, `redis+sentinel://127.0.0.1:${dead}/payments`);
    await until(async () => errors.length > 2);
    assert.match(errors[0] ?? "", /^All sentinels are unreachable: connect ECONNREFUSED/);
  });

  it("are opened again when the driver has given up", async (t) => {
    const server = closing(t, await startRedis());
    const [client, other] = [kept(t, server.port), kept(t, server.port)];
    await Promise.all([answers(client), answers(other)]);
    for (let round = 0; round < 3; round++) {
      const ended = Promise.all([endOf(client), endOf(other)]);
      await server.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
      await ended;
      await Promise.all([answers(client), answers(other)]);
    }
    // Control: nothing else opens it again, while the other one is opened three times more.
    const ended = endOf(client);
    client.disconnect();
    await ended;
    for (let round = 0; round < 3; round++) {
      const otherEnded = endOf(other);
      await server.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
      await otherEnded;
      await answers(other);
    }
    assert.equal(client.status, "end");
  });

  it("retry without end, with pauses that grow, and never after disconnect", async (t) => {
    const port = await freePort();
    const triesOf = (client: Redis) => {
      const all: number[] = [];
      client.on("connecting", () => void all.push(performance.now()));
      return all;
    };
    const [client, other] = [kept(t, port), kept(t, port)];
    const [tries, others] = [triesOf(client), triesOf(other)];
    await until(async () => tries.length > 6);
    const pauses = tries.slice(1).map((at, nth) => at - tries[nth]!);
    assert.ok(pauses.at(-1)! > 2 * pauses[0]!, `${pauses} ms`);
    client.disconnect();
    const then = tries.length;
    // Control: another one goes on to retry, for longer than the first would have paused.
    const goneOn = others.length + 2;
    await until(async () => others.length > goneOn);
    assert.equal(tries.length, then);
  });

  it("to a cluster are opened again after all of its nodes were away", async (t) => {
    const cluster = closing(t, await startCluster());
    const { client } = connecting(t, cluster.url);
    assert(client instanceof Cluster);
    await until(async () => (await client.set("key", "value")) === "OK");
    await Promise.all(cluster.nodes.map((node) => node.kill()));
    await assert.rejects(client.set("key", "value"));
    await Promise.all(cluster.nodes.map((node) => node.start()));
    await until(async () => (await client.set("key", "value")) === "OK");
  });
});
