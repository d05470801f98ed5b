import { after, before, describe } from "node:test";
import { eventLogContract } from "../../contracts/event-log.ts";
import { eventLogModel } from "../../contracts/event-log-model.ts";
import { type RedisServer, startRedis, withoutRedis } from "../../redis/server.ts";
import { redisHarness } from "./rig.ts";

describe("on a Redis alone", { skip: withoutRedis }, () => {
  let server: RedisServer;
  before(async () => {
    server = await startRedis();
  });
  after(() => server.close());

  const harness = () => redisHarness(server.url);
  eventLogContract("redis", harness);
  eventLogModel("redis", harness);
});
