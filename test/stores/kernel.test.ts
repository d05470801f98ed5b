import { randomUUID } from "node:crypto";
import { describe } from "node:test";
import { connectRedis } from "../../src/redis/connect.ts";
import { readyWithin } from "../../src/redis/ready-within.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { createMemoryKernel } from "../../src/stores/memory/kernel.ts";
import type { RedisAccount } from "../../src/stores/redis/account.ts";
import { createRedisKernel } from "../../src/stores/redis/kernel.ts";
import { createSqliteKernel } from "../../src/stores/sqlite/kernel.ts";
import { openStoreThread } from "../../src/stores/sqlite/store-thread.ts";
import { testKernel } from "../contracts/kernel.ts";
import { ofSuite } from "../of-suite.ts";
import { startCluster } from "../redis/cluster.ts";
import { startRedis, withoutRedis } from "../redis/server.ts";
import { freshDirectory } from "./sqlite/directories.ts";

const retentionMs = 7 * 86_400_000;
const closed = new Error("the test is over");

testKernel("in memory", async () => {
  const kernel = createMemoryKernel({ retentionMs });
  const sweep = async (account: string) => void (await kernel.account(account).read([]));
  return { kernel, peer: kernel, sweep, stop: () => kernel.close(closed) };
});

testKernel("in SQLite", async () => {
  const { path, remove } = freshDirectory();
  const thread = await openStoreThread({ directory: path });
  const kernel = createSqliteKernel({ thread, retentionMs });
  return {
    kernel,
    peer: kernel,
    async sweep() {
      while (await thread.run("sweep", [Date.now(), retentionMs]));
    },
    async stop() {
      await kernel.close(closed);
      await thread.close();
      remove();
    },
  };
});

const servers = {
  Redis: startRedis,
  // Keys of one account are in one slot, so that no script meets keys of two nodes.
  "a Redis cluster": startCluster,
};
for (const [name, startServer] of Object.entries(servers)) {
  describe(`on ${name}`, { skip: withoutRedis }, () => {
    const server = ofSuite<{ readonly url: string; close(): Promise<void> }>(startServer);

    testKernel(`in ${name}`, async () => {
      const prefix = randomUUID();
      const all = [0, 1].map(() => {
        const redis = connectRedis(new Secret(server.url), () => {});
        const ofRecords = { indexes: [], keepMs: retentionMs };
        return { redis, kernel: createRedisKernel({ redis, prefix, retentionMs, ofRecords }) };
      });
      await Promise.all(all.map(({ redis }) => readyWithin(5_000, redis.client)));
      const [one, peer] = all as [(typeof all)[0], (typeof all)[0]];
      return {
        kernel: one.kernel,
        peer: peer.kernel,
        sweep: (account, index) =>
          (one.kernel.account(account) as RedisAccount).dropExpired(
            [index],
            Number.MAX_SAFE_INTEGER,
          ),
        async stop() {
          for (const { redis, kernel } of all) {
            await kernel.close(closed);
            await redis.close();
          }
        },
      };
    });
  });
}
