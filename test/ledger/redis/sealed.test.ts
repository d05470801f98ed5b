import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe } from "node:test";
import { testSealed } from "../../contracts/sealed.ts";
import { ofSuite } from "../../of-suite.ts";
import { dumpRedis } from "../../redis/dump.ts";
import { startRedis, withoutRedis } from "../../redis/server.ts";
import { replica } from "./rig.ts";

describe("on a single Redis", { skip: withoutRedis }, () => {
  const server = ofSuite(startRedis);

  testSealed("Redis", async () => {
    const prefix = randomUUID();
    return {
      open: (keys) => replica(server.url, { prefix, ...keys }),
      async held() {
        const own = [...(await dumpRedis(server.port))].filter(([key]) => key.startsWith(prefix));
        assert.ok(own.length > 3, `${own.length} keys`);
        return own.flat().join("\n");
      },
    };
  });
});
