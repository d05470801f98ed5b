import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, it, type TestContext } from "node:test";
import { setImmediate } from "node:timers/promises";
import { Cluster, Redis } from "ioredis";
import type { RedisClient } from "../../src/redis/connect.ts";
import { closing, ofSuite } from "../of-suite.ts";
import { until } from "../until.ts";
import { startCluster } from "./cluster.ts";
import { startRedis, withoutRedis } from "./server.ts";
import { connected } from "./suite.ts";

const manyCommands = 50;

describe("the commands of one turn of the event loop", {
  skip: withoutRedis,
}, () => {
  const server = ofSuite(startRedis);
  const cluster = ofSuite(startCluster);
  const clientOf = async (t: TestContext, url: string) => closing(t, await connected(url)).client;

  it("leave in one write, and are answered in order", async (t) => {
    const client = await clientOf(t, server.url);
    const writes = countWrites(client as Redis);
    const answers = await Promise.all(increments(client, "{one}counter"));
    assert.deepEqual(
      answers,
      Array.from({ length: manyCommands }, (_, at) => at + 1),
    );
    assert.equal(writes(), 1);
  });

  it("leave in one write each on a connection without joined writes", async (t) => {
    const client = new Redis(server.url);
    t.after(() => client.disconnect());
    await once(client, "ready");
    const writes = countWrites(client);
    await Promise.all(increments(client, "{other}counter"));
    assert.equal(writes(), manyCommands);
  });

  it("leave in one write after a reconnect too", async (t) => {
    const client = (await clientOf(t, server.url)) as Redis;
    const ready = once(client, "ready");
    client.stream.destroy();
    await ready;
    const writes = countWrites(client);
    await Promise.all(increments(client, "{again}counter"));
    assert.equal(writes(), 1);
  });

  it("leave in one write for the cluster node that serves their key", async (t) => {
    const client = await clientOf(t, cluster.url);
    assert.ok(client instanceof Cluster);
    // The connection to a node is opened by the first command for it.
    await client.set("{slot}counter", "0");
    const counts = client
      .nodes("master")
      .filter(({ stream }) => stream)
      .map(countWrites);
    await Promise.all(increments(client, "{slot}counter"));
    assert.equal(
      counts.reduce((sum, writes) => sum + writes(), 0),
      1,
    );
  });

  it("leave before their connection is closed in the same turn", async (t) => {
    const client = await clientOf(t, server.url);
    const set = client.set("{last}word", "kept");
    client.disconnect();
    await set.catch(() => {});
    await until(async () => (await server.command("GET", "{last}word")) === "kept");
  });

  it("leave at the end of the turn, even if nothing else happens", async (t) => {
    const client = await clientOf(t, server.url);
    const { stream } = client as Redis;
    const set = client.set("{alone}word", "kept");
    assert.equal(stream.writableCorked, 1);
    await setImmediate();
    assert.equal(stream.writableCorked, 0);
    assert.equal(await set, "OK");
  });
});

function increments(client: RedisClient, key: string): Promise<number>[] {
  return Array.from({ length: manyCommands }, () => client.incr(key));
}

/** Counts the writes of a connection to its socket from now on. */
function countWrites({ stream }: Redis): () => number {
  let writes = 0;
  const socket = stream as unknown as Record<"_write" | "_writev", (...args: unknown[]) => unknown>;
  for (const name of ["_write", "_writev"] as const) {
    const write = socket[name];
    socket[name] = (...args) => {
      writes += 1;
      return write.apply(socket, args);
    };
  }
  return () => writes;
}
