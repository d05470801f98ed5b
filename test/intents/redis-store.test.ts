import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { createRedisIntents } from "../../src/intents/redis-store.ts";
import type { IntentStore, NewIntent } from "../../src/intents/store.ts";
import { connectRedis, type RedisConnector } from "../../src/redis/connect.ts";
import { Secret } from "../../src/secret.ts";
import { testIntentStore } from "../contracts/intent-store.ts";
import { type RedisServer, startRedis, until, withoutRedis } from "../redis/server.ts";

const options = { firstLookMs: 60_000, giveUpMs: 3_600_000 };

describe("on Redis", { skip: withoutRedis }, () => {
  let server: RedisServer;
  let redis: RedisConnector;
  before(async () => {
    server = await startRedis();
    redis = connectRedis(new Secret(server.url), () => {});
    await until(async () => redis.client.status === "ready");
  });
  after(async () => {
    await redis.close();
    await server.close();
  });

  testIntentStore("Redis", async (given) => {
    const prefix = randomUUID();
    const make = () => createRedisIntents({ ...given, client: redis.client, prefix });
    return [make(), make()];
  });
});

describe("with Redis away", { skip: withoutRedis, timeout: 30_000 }, () => {
  const intent = (about: Partial<NewIntent> = {}): NewIntent => ({
    id: randomUUID(),
    method: "CreatePayment",
    kind: EventKind.PAYMENT,
    externalId: "order",
    leaseMs: 60_000,
    exclusive: true,
    ...about,
  });

  for (const away of ["kill", "pause"] as const) {
    it(`goes on without keys, and writes what happened when it is back (${away})`, async (t) => {
      const server = await startRedis([["appendonly", "yes"]]);
      t.after(() => server.close());
      const redis = connectRedis(new Secret(server.url), () => {});
      t.after(() => redis.close());
      await until(async () => redis.client.status === "ready");
      const states: string[] = [];
      const make = (): IntentStore =>
        createRedisIntents({
          ...options,
          client: redis.client,
          prefix: "p",
          answerMs: 200,
          onStateChange: (state) => void states.push(state),
        });
      const [store, other] = [make(), make()];
      t.after(() => Promise.all([store.close(), other.close()]));

      const before = await store.begin("default", intent({ externalId: "before" }));
      assert.ok(before.kind === "started");
      if (away === "kill") await server.kill();
      else server.pause();

      const key = { digest: "d", fingerprints: ["f"] };
      await assert.rejects(store.begin("default", intent({ key })), { code: "UNAVAILABLE" });
      const lost = await store.begin("default", intent());
      assert.ok(lost.kind === "started");
      assert.equal((await store.begin("default", intent())).kind, "inFlight");
      const answered = await store.begin("default", intent({ externalId: "answered" }));
      assert.ok(answered.kind === "started");
      await store.end("default", lost.intent, { state: "unknown" });
      await store.end("default", answered.intent, { state: "closed", key: "free" });
      await store.end("default", before.intent, { state: "closed", key: "free" });
      const [own] = await store.open("default", EventKind.PAYMENT, "order");
      assert.equal(own?.state, "unknown");

      if (away === "kill") await server.start();
      else server.resume();
      await until(async () => states.at(-1) === "shared");
      assert.deepEqual(
        (await other.open("default", EventKind.PAYMENT, "order")).map(({ id, state }) => [
          id,
          state,
        ]),
        [[lost.intent.id, "unknown"]],
      );
      assert.equal((await other.begin("default", intent())).kind, "inFlight");
      for (const externalId of ["answered", "before"]) {
        assert.equal((await other.begin("default", intent({ externalId }))).kind, "started");
      }
      const begun = await other.begin("default", intent({ key, externalId: "free" }));
      assert.equal(begun.kind, "started", "a key that could not be promised is free");
    });
  }
});
