import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, it, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { EventKind } from "../../../src/gen/payments/v1/event_pb.ts";
import type { Begun, NewIntent } from "../../../src/ledger/intents.ts";
import type { Ledger } from "../../../src/ledger/ledger.ts";
import { accountKeys } from "../../../src/redis/keys.ts";
import { linkOf } from "../../../src/redis/link.ts";
import { loadScript } from "../../../src/redis/script.ts";
import { createWriter } from "../../../src/redis/writer.ts";
import { closing, ofSuite } from "../../of-suite.ts";
import { openCalls } from "../../open-calls.ts";
import { startRedis, startReplicated, withoutRedis } from "../../redis/server.ts";
import { connected } from "../../redis/suite.ts";
import { until } from "../../until.ts";
import { callBegun, newCall, started } from "../new-call.ts";
import { createRedisCalls, type RedisCallsOptions } from "./rig.ts";

const options = { firstLookMs: 60_000, giveUpMs: 3_600_000 };

/** Begins a call while Redis is away: it is refused until the client has seen a connection fail. */
async function beginsAlone(store: Ledger, about: Partial<NewIntent> = {}): Promise<Begun> {
  let begun: Begun | undefined;
  await until(async () => {
    begun = await store.begin("default", newCall(about));
    return true;
  });
  assert.ok(begun);
  return begun;
}

describe("on Redis", { skip: withoutRedis }, () => {
  const server = ofSuite(startRedis);
  const redis = ofSuite(() => connected(server.url));

  const make = (about: Partial<RedisCallsOptions> = {}) =>
    createRedisCalls({ ...options, redis, prefix: "", ...about });
  const key = { digest: "d", fingerprints: ["f"] };

  it("takes no call that runs for lost by a machine's clock that is ahead", async (t) => {
    const prefix = randomUUID();
    started(await make({ prefix }).begin("default", newCall()));
    const { now } = Date;
    t.mock.method(Date, "now", () => now() + 3_600_000);
    assert.deepEqual(await make({ prefix }).due("default", 10), []);
    assert.deepEqual(await make({ prefix }).unsettled("default"), []);
  });

  it("refuses calls for a record whose key is of another type, and no others", async () => {
    const prefix = randomUUID();
    const store = make({ prefix });
    const { record, index } = accountKeys(prefix, "default");
    await server.command("RPUSH", record("payment:damaged"), "x");
    for (let n = 0; n < 2; n++) {
      const damaged = store.begin("default", newCall({ externalId: "damaged" }));
      await assert.rejects(damaged, { code: "INTERNAL", key: "payment:damaged" });
      const externalId = `order-${n}`;
      assert.equal((await store.begin("default", newCall({ externalId }))).kind, "started");
    }
    const known = store.known("default", EventKind.PAYMENT, "damaged");
    await assert.rejects(known, { code: "INTERNAL" });
    await server.command("ZADD", index("payment:PENDING"), 7, "no key of a record");
    const selection = { kind: EventKind.PAYMENT, states: [], newestFirst: false } as const;
    const listed = await store.list("default", { ...selection, needsOperator: undefined }, 10);
    const { cursor } = await store.known("default", EventKind.PAYMENT, listed[0]!.externalId);
    assert.deepEqual([listed.length, cursor], [1, ""], "nor does an index say more");
  });

  it("writes a call that a failed server has lost again, with its lock and key", async () => {
    const prefix = randomUUID();
    const [store, other] = [make({ prefix }), make({ prefix })];
    const askedMs = performance.now();
    const lost = await callBegun(store, "default", { key });
    const begunMs = performance.now();
    await server.command("FLUSHALL");
    const [running] = await openCalls(store, "default");
    assert.equal(running?.id, lost.id, "it is under way here");
    await delay(250);
    const lostMs = performance.now();
    await store.end("default", lost, { state: "unknown" });
    const [open] = await openCalls(other, "default");
    assert.deepEqual([open?.id, open?.state], [lost.id, "unknown"]);
    // Only the round trips of begin and end may shift the start, not the time between them.
    const late = (open?.startedAtMs ?? 0) - lost.startedAtMs;
    const underWayMs = begunMs - askedMs + performance.now() - lostMs + 10;
    assert.ok(Math.abs(late) <= underWayMs, `it began when it began: ${late} of ${underWayMs} ms`);
    assert.equal((await other.begin("default", newCall())).kind, "inFlight");
    assert.equal((await other.begin("default", newCall({ key }))).kind, "keyUnknown");
  });

  it("stores the answer of a key that a failed server has lost", async () => {
    const prefix = randomUUID();
    const [store, other] = [make({ prefix }), make({ prefix })];
    const begun = await callBegun(store, "default", { key });
    await server.command("FLUSHALL");
    const answer = Buffer.from([0, 255, 10]);
    await store.end("default", begun, { state: "closed", mark: "p1", key: answer });
    assert.deepEqual(await other.begin("default", newCall({ key })), {
      kind: "keyAnswered",
      answer,
    });
  });

  it("repeats the ending of an unsent call until the replicas hold it, and then key and lock are free", async (t) => {
    const { primary, replica } = closing(t, await startReplicated());
    const about = { redis: closing(t, await connected(primary.url)) };
    const [store, other] = [make({ ...about, minReplicas: 1 }), make(about)];
    // Its connection for writes has to be opened first.
    await until(async () => openCalls(store, "default").then(Boolean));
    const begun = await callBegun(store, "default", { key });
    const commits = async () => {
      const told = String(await primary.command("INFO", "commandstats"));
      return Number(/cmdstat_evalsha:calls=(\d+)/.exec(told)?.[1]);
    };
    replica.pause();
    try {
      await store.end("default", begun, { state: "closed", key: "free" });
      // A failover would lose what the primary alone has of the ending: it is written again.
      const before = await commits();
      await until(async () => (await commits()) > before + 2);
    } finally {
      replica.resume();
    }
    assert.equal((await other.begin("default", newCall({ key }))).kind, "started");
    await store.close();
  });

  it("begins no call that too few replicas hold, and leaves nothing behind", async () => {
    const prefix = randomUUID();
    const [store, other] = [make({ prefix, minReplicas: 1 }), make({ prefix })];
    await assert.rejects(store.begin("default", newCall({ key })), { code: "UNAVAILABLE" });
    await assert.rejects(store.begin("default", newCall()), { code: "UNAVAILABLE" });
    await until(async () => (await openCalls(other, "default")).length === 0);
    const begun = await other.begin("default", newCall({ key }));
    assert.equal(begun.kind, "started", "key and lock are free");
    await store.close();
  });
});

describe("writes that replicas must hold", { skip: withoutRedis }, () => {
  const server = ofSuite(startRedis);
  const redis = ofSuite(() => connected(server.url));

  it("are not sent once their callers have given up", async () => {
    const writer = createWriter(redis, 1);
    const touch = loadScript(
      ...["open-log", "touch-log"].map(
        (name) => new URL(`../../../src/stores/redis/${name}.lua`, import.meta.url),
      ),
    );
    const write = (n: number) => writer(touch, [`{w}:${n}`, "{w}:events"], []);
    // Each batch of 128 waits a second for the replica that is not there; callers wait for three.
    const written = await Promise.allSettled(Array.from({ length: 1_024 }, (_, n) => write(n)));
    const given = written.filter(({ status }) => status === "rejected").length;
    assert.ok(given > 0);
    // Behind all that went before.
    await write(-1);
    assert.ok(((await server.command("DBSIZE")) as number) < 1_024);
  });
});

describe("with Redis away", { skip: withoutRedis }, () => {
  /** The stores of two replicas. */
  function pairOn(
    t: TestContext,
    about: Pick<RedisCallsOptions, "redis"> & Partial<RedisCallsOptions>,
  ) {
    const make = () => createRedisCalls({ ...options, prefix: "p", answerMs: 200, ...about });
    const pair = [make(), make()] as const;
    t.after(() => Promise.all(pair.map((store) => store.close())));
    return pair;
  }

  it("begins calls without a key, and writes them when Redis is back", async (t) => {
    const server = closing(t, await startRedis([["appendonly", "yes"]]));
    const redis = closing(t, await connected(server.url));
    const states: string[] = [];
    const onStateChange = (_: unknown, state: string) => void states.push(state);
    const [store, other] = pairOn(t, { redis, onStateChange });
    const before = await callBegun(store, "default", { externalId: "before" });
    await server.kill();

    const key = { digest: "d", fingerprints: ["f"] };
    await assert.rejects(store.begin("default", newCall({ key })), { code: "UNAVAILABLE" });
    const lost = started(await beginsAlone(store));
    assert.equal((await beginsAlone(store)).kind, "inFlight");
    const answered = started(await beginsAlone(store, { externalId: "answered" }));
    await store.end("default", lost, { state: "unknown" });
    await store.end("default", answered, { state: "closed", key: "free" });
    await store.end("default", before, { state: "closed", key: "free" });
    // Its own calls alone are no answer: other gateways may have open ones.
    const open = openCalls(store, "default");
    await assert.rejects(open, { code: "UNAVAILABLE" });

    await server.start();
    await until(async () => states.at(-1) === "shared");
    assert.deepEqual(
      (await openCalls(other, "default")).map(({ id, state }) => [id, state]),
      [[lost.id, "unknown"]],
    );
    assert.equal((await other.begin("default", newCall())).kind, "inFlight");
    for (const externalId of ["answered", "before"]) {
      assert.equal((await other.begin("default", newCall({ externalId }))).kind, "started");
    }
    const begun = await other.begin("default", newCall({ key, externalId: "free" }));
    assert.equal(begun.kind, "started", "a key that could not be promised is free");
  });

  /** A store, and an open call that another replica's store has begun. */
  async function rig(t: TestContext, about: Partial<RedisCallsOptions> = {}) {
    const server = closing(t, await startRedis());
    const redis = closing(t, await connected(server.url));
    const [store, other] = pairOn(t, { redis, ...about });
    await callBegun(other, "default");
    return {
      server,
      redis,
      store,
      /** How begin answers for the held external_id, for a free one, and for one with a key. */
      async begins() {
        const key = { digest: randomUUID(), fingerprints: ["f"] };
        const calls = [
          newCall(),
          newCall({ externalId: "free" }),
          newCall({ externalId: "keyed", key }),
        ];
        const begun = await Promise.allSettled(calls.map((call) => store.begin("default", call)));
        return begun.map((result) =>
          result.status === "fulfilled" ? result.value.kind : result.reason.code,
        );
      },
    };
  }

  const stopped = ["UNAVAILABLE", "UNAVAILABLE", "UNAVAILABLE"];

  it("begins no call while Redis is connected but silent, however long", async (t) => {
    const { server, redis, store, begins } = await rig(t);
    server.pause();
    // Beyond the client's own time-out: its next connections are accepted, but silent too.
    let reconnected = false;
    redis.client.once("connect", () => {
      reconnected = true;
    });
    while (!reconnected) assert.deepEqual(await begins(), stopped);
    assert.deepEqual(await begins(), stopped);
    server.resume();
    await until(async () => (await store.begin("default", newCall())).kind === "inFlight");
    await until(async () => (await begins())[1] === "started");
  });

  const refusing: [string, [string, ...string[]]][] = [
    ["is out of memory", ["CONFIG", "SET", "maxmemory", "1"]],
    ["is read-only", ["REPLICAOF", "127.0.0.1", "1"]],
    ["lacks replicas", ["CONFIG", "SET", "min-replicas-to-write", "1"]],
  ];
  for (const [what, command] of refusing) {
    it(`begins no call while Redis ${what}`, async (t) => {
      const { server, begins } = await rig(t);
      await server.command(...command);
      for (let n = 0; n < 3; n++) {
        const [held = "", ...others] = await begins();
        assert.deepEqual(others, stopped.slice(1));
        assert.match(held, /^(inFlight|UNAVAILABLE)$/, "a lock that is held may still be told");
      }
    });
  }

  for (const [what, required, expected] of [
    ["begins no call while Redis is away and required", true, stopped],
    [
      "control: begins calls without a key while Redis is away and not required",
      false,
      ["started", "started", "UNAVAILABLE"],
    ],
  ] as const) {
    it(what, async (t) => {
      const { server, redis, begins } = await rig(t, { required });
      await server.kill();
      await until(async () => linkOf(redis.client).isAway());
      assert.deepEqual(await begins(), expected);
    });
  }
});
