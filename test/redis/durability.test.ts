import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { describeDurability } from "../../src/redis/durability.ts";
import { closing, ofSuite } from "../of-suite.ts";
import { startCluster } from "./cluster.ts";
import { startRedis, withoutRedis } from "./server.ts";
import { connected } from "./suite.ts";

describe("the durability warning", { skip: withoutRedis }, () => {
  const server = ofSuite(startRedis);
  const redis = ofSuite(() => connected(server.url));

  async function told(settings: Record<string, string>): Promise<string | undefined> {
    for (const [name, value] of Object.entries(settings)) {
      await server.command("CONFIG", "SET", name, value);
    }
    return describeDurability(redis);
  }

  it("names the loss without a file and with snapshots, and is absent with an AOF", async () => {
    assert.match((await told({ appendonly: "no", save: "" })) ?? "", /nothing on disk/);
    assert.match((await told({ save: "3600 1" })) ?? "", /only snapshots.*"3600 1"/);
    assert.match((await told({ appendonly: "yes" })) ?? "", /appendfsync is everysec/);
    assert.equal(await told({ appendfsync: "always" }), undefined);
  });

  it("names a policy that lets Redis evict events", async () => {
    const limits = { maxmemory: "100mb", "maxmemory-policy": "allkeys-lru" };
    assert.match(
      (await told({ appendonly: "yes", ...limits })) ?? "",
      /a second time: .* allkeys-lru/,
    );
    assert.equal(await told({ "maxmemory-policy": "noeviction" }), undefined);
  });

  it("reports unknown snapshot settings where CONFIG is not allowed", async () => {
    await told({ appendonly: "no", save: "" });
    const rules = ["on", ">secret", "~*", "&*", "+@all", "-config"];
    await server.command("ACL", "SETUSER", "guest", ...rules);
    const guest = await connected(server.url.replace("redis://", "redis://guest:secret@"));
    assert.match((await describeDurability(guest)) ?? "", /does not tell/);
    await guest.close();
  });

  it("names a missing configuration file where Sentinels change the roles", async (t) => {
    const bare = await startRedis([], async (dir, port) => {
      const aof = { appendonly: "yes", appendfsync: "always" };
      const settings = { port: `${port}`, bind: "127.0.0.1", dir, ...aof };
      return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
    });
    t.after(() => bare.close());
    const opened = closing(t, await connected(bare.url));
    assert.match(
      (await describeDurability({ client: opened.client, sentinels: {} as never })) ?? "",
      /no configuration file/,
    );
    assert.equal(await describeDurability(opened), undefined);
    await told({ appendonly: "yes" });
    assert.equal(
      await describeDurability({ client: redis.client, sentinels: {} as never }),
      undefined,
    );
  });

  it("covers every primary of a cluster", async (t) => {
    const cluster = closing(t, await startCluster(3, [["appendonly", "yes"]]));
    const joined = closing(t, await connected(cluster.url));
    assert.equal(await describeDurability(joined), undefined);
    await cluster.nodes[2]?.command("CONFIG", "SET", "appendonly", "no");
    assert.match((await describeDurability(joined)) ?? "", /nothing on disk/);
  });

  it("fails with UNAVAILABLE while Redis does not answer", async () => {
    server.pause();
    try {
      await assert.rejects(describeDurability(redis), { code: "UNAVAILABLE" });
    } finally {
      server.resume();
    }
  });
});
