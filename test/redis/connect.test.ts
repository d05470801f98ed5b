import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import { type RedisCluster, startCluster } from "./cluster.ts";
import { withoutRedis } from "./server.ts";

describe("a connection to a cluster", { skip: withoutRedis }, () => {
  let cluster: RedisCluster;
  before(async () => {
    cluster = await startCluster();
  });
  after(() => cluster.close());

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
      timeout: 30_000,
      killSignal: "SIGKILL",
    });
    const exit = new Promise((resolve) =>
      child.once("exit", (code, signal) => resolve(code ?? signal)),
    );
    assert.equal(await text(child.stdout), "closed while it asks\n");
    assert.equal(await exit, 0);
  });
});
