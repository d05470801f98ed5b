import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, it, type TestContext } from "node:test";
import { EventKind } from "../../../src/gen/payments/v1/event_pb.ts";
import { createWriter } from "../../../src/redis/writer.ts";
import { openCalls } from "../../open-calls.ts";
import { startSentinelSet } from "../../redis/sentinel.ts";
import { withoutRedis } from "../../redis/server.ts";
import { closing, connected } from "../../redis/suite.ts";
import { until } from "../../until.ts";
import { newCall } from "../new-call.ts";
import { createRedisCalls } from "./calls-rig.ts";

const account = "shop";
const key = { digest: "d", fingerprints: ["f"] };

/** Two gateways' stores on a Sentinel set. */
async function rig(t: TestContext, minReplicas: number) {
  const set = closing(t, await startSentinelSet());
  const join = async () => {
    const redis = await connected(set.url);
    const writer = createWriter({ redis, minReplicas });
    if (minReplicas > 0) {
      // The writer's own connection may still be opening: wait until it works.
      const probe = { ...options, redis, prefix: randomUUID(), writer };
      await until(async () => !!(await createRedisCalls(probe).begin(account, newCall({ key }))));
    }
    const store = createRedisCalls({ ...options, redis, prefix: "p", writer });
    t.after(async () => {
      await store.close();
      await redis.close();
    });
    return store;
  };
  const [store, other] = await Promise.all([join(), join()]);
  return {
    store,
    other,
    set,
    /** Resolves once Sentinel has promoted a replica and the other store uses it. */
    async failOver() {
      const before = await set.masterPort();
      await set.servers[0]?.kill();
      await until(async () => (await set.masterPort()) !== before);
      await until(async () => !!(await other.begin(account, newCall({ externalId: "probe" }))));
      await until(async () => await other.lease(account, "test", 1_000));
    },
  };
}

const options = { firstLookMs: 60_000, giveUpMs: 3_600_000 };

describe("intents through a Sentinel failover", {
  skip: withoutRedis,
  concurrency: true,
  timeout: 120_000,
}, () => {
  it("survive with their locks and keys if a replica had to hold them", async (t) => {
    const { store, other, failOver } = await rig(t, 1);
    const calls = Array.from({ length: 20 }, (_, n) => newCall({ externalId: `order-${n}` }));
    const begun = await Promise.all(calls.map((given) => store.begin(account, given)));
    assert.ok(begun.every(({ kind }) => kind === "started"));
    const keyed = await store.begin(account, newCall({ key }));
    assert.equal(keyed.kind, "started");
    await failOver();
    // The gateway that began them has written nothing since: it may be gone.
    for (const { id, externalId } of calls) {
      const [open] = await openCalls(other, account, EventKind.PAYMENT, externalId);
      assert.equal(open?.id, id);
      assert.equal((await other.begin(account, newCall({ externalId }))).kind, "inFlight");
    }
    assert.equal((await other.begin(account, newCall({ key }))).kind, "keyRunning");
  });

  it("are written again once they are unknown if no replica had to hold them", async (t) => {
    const { store, other, set, failOver } = await rig(t, 0);
    // From here on no write reaches the replicas.
    const [master, ...replicas] = set.servers;
    for (const replica of replicas) replica.pause();
    await master?.command("CLIENT", "KILL", "TYPE", "replica");
    const begun = await store.begin(account, newCall({ key }));
    assert.ok(begun.kind === "started");
    await master?.kill();
    for (const replica of replicas) replica.resume();
    await failOver();
    assert.deepEqual(
      await openCalls(other, account, EventKind.PAYMENT, "order"),
      [],
      "the control: it was lost",
    );
    await store.end(account, begun.intent, { state: "unknown" });
    const known = async () => await openCalls(other, account, EventKind.PAYMENT, "order");
    await until(async () => (await known()).length > 0);
    assert.deepEqual(
      (await known()).map(({ id, state }) => [id, state]),
      [[begun.intent.id, "unknown"]],
    );
    assert.equal((await other.begin(account, newCall())).kind, "inFlight");
    assert.equal((await other.begin(account, newCall({ key }))).kind, "keyUnknown");
  });
});
