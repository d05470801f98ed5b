import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { describe, it, type TestContext } from "node:test";
import {
  acknowledgedBy,
  candidatesOf,
  hasLongBeenOutOfSync,
  isOutranked,
  readNodes,
  readRole,
} from "../../src/redis/acknowledged.ts";
import type { RedisConnector } from "../../src/redis/connect.ts";
import { Link } from "../../src/redis/link.ts";
import type { Script } from "../../src/redis/script.ts";
import type { SentinelReplica, SentinelView } from "../../src/redis/sentinels.ts";
import { AllReplicas, type PipelineAnswers } from "../../src/redis/write-concern.ts";
import { createWriter, type MinReplicas } from "../../src/redis/writer.ts";
import { numbered } from "../ledger/entries.ts";
import { type Replica, replica } from "../ledger/redis/rig.ts";
import { isAway } from "../ledger/refusals.ts";
import { closing } from "../of-suite.ts";
import { until } from "../until.ts";
import { addReplica, moveSlot, ownerOf, startCluster } from "./cluster.ts";
import { type SentinelSet, startSentinelSet } from "./sentinel.ts";
import { withoutRedis } from "./server.ts";

const up = { spared: false };
const down = { spared: true };

describe("a write must be held by every replica that could be promoted:", () => {
  const following = (replicas: Record<string, number>) => ({
    offset: 100,
    replicas: new Map(Object.entries(replicas)),
  });
  const lacking = (replicas: Record<string, number>, candidates: Record<string, typeof up>) =>
    acknowledgedBy(100, following(replicas), new Map(Object.entries(candidates))).lacking;

  it("a replica in sync with a lower offset lacks it", () => {
    assert.deepEqual(lacking({ a: 100, b: 101 }, { a: up, b: up }), []);
    assert.deepEqual(lacking({ a: 99, b: 101 }, { a: up, b: up }), ["a"]);
    assert.deepEqual(lacking({ a: 99, b: 101 }, {}), ["a"], "nor one that nobody knows yet");
  });

  it("a promoted replica that left lacks it, though all that remain hold it", () => {
    assert.deepEqual(lacking({ b: 100 }, { a: up, b: up }), ["a"]);
    const { lacking: recent } = acknowledgedBy(100, following({ b: 100 }), new Map(), ["a"]);
    assert.deepEqual(recent, ["a"], "nor before the Sentinels knew of it");
  });

  it("replicas that are down or never promoted need not hold it", () => {
    assert.deepEqual(lacking({ b: 100 }, { a: down, b: up }), []);
    assert.deepEqual(lacking({ b: 100, c: 7 }, { b: up, c: down }), []);
    assert.deepEqual(lacking({}, { a: down, b: down }), []);
  });

  it("ROLE, CLUSTER NODES and INFO give the offsets and the state of the replicas", () => {
    assert.deepEqual(readRole(["master", 100, [["10.0.0.1", "6379", "99"]]]), {
      offset: 100,
      replicas: new Map([["10.0.0.1:6379", 99]]),
    });
    assert.throws(() => readRole(["slave", "10.0.0.1", 6379, "connected", 99]), /no primary/);
    const nodes = (mine: string) => `p 10.0.0.1:1@2 myself,${mine} - 0 0 1 connected 0-16383
a 10.0.0.2:1@2,name slave p 0 0 1 connected
b 10.0.0.3:1@2 slave,fail p 0 0 1 disconnected
c 10.0.0.4:1@2 slave,fail? p 0 0 1 disconnected
d 10.0.0.5:1@2 slave,nofailover p 0 0 1 connected
e 10.0.0.6:1@2 slave q 0 0 1 connected
`;
    assert.deepEqual(
      [...readNodes(nodes("master")).replicas],
      [
        ["10.0.0.2:1", up],
        ["10.0.0.3:1", down],
        ["10.0.0.4:1", up],
        ["10.0.0.5:1", down],
      ],
    );
    assert.throws(() => readNodes(nodes("slave")), /no primary/);
    const info = (role: string, link: string, since: number, uptime = 5) =>
      `uptime_in_seconds:${uptime}\r\nrole:${role}\r\nmaster_link_status:${link}\r\nmaster_link_down_since_seconds:${since}\r\n`;
    assert.equal(hasLongBeenOutOfSync(info("slave", "down", 21)), true);
    assert.equal(hasLongBeenOutOfSync(info("slave", "down", -1, 21)), true);
    assert.equal(hasLongBeenOutOfSync(info("slave", "down", -1)), false);
    assert.equal(hasLongBeenOutOfSync(info("slave", "down", 3, 99)), false);
    assert.equal(hasLongBeenOutOfSync(info("slave", "up", 99)), false);
    assert.equal(hasLongBeenOutOfSync(info("master", "down", 99)), false);
  });

  it("most Sentinels must answer, name this primary and agree that a replica is down", () => {
    const view = (about: Partial<SentinelView> = {}, isDown = false): SentinelView => ({
      ...{ primary: "p", epoch: 1, sentinels: 3, failingOver: false },
      replicas: [{ address: "a", down: isDown, priority: 100, offset: 0 }],
      ...about,
    });
    const of = (views: SentinelView[]) => {
      try {
        return candidatesOf(views, "p").get("a");
      } catch (error) {
        return String(error);
      }
    };
    assert.match(String(of([])), /0 of 1 Sentinels answer/);
    assert.deepEqual(of([view({}, true), view({}, true)]), down);
    assert.deepEqual(of([view({}, true), view(), view({}, true)]), up, "one can reach it");
    assert.match(String(of([view({}, true)])), /1 of 3 Sentinels answer/);
    assert.match(String(of([view({ sentinels: 4 }), view()])), /2 of 4 Sentinels answer/);
    assert.match(String(of([view({ sentinels: 5 }), view()])), /2 of 5 Sentinels answer/);
    assert.match(
      String(of([view(), view(), view({ primary: "a", epoch: 2 })])),
      /name a as primary/,
    );
    assert.deepEqual(of([view(), view(), view({ primary: "old", epoch: 0 })]), up);
    for (const views of [
      [view(), view({ primary: "a" })],
      [view({ primary: "a" }), view()],
    ])
      assert.match(String(of(views)), /name a as primary/, "its epoch was read before its address");
    const unread = view({ primary: "a", epoch: Number.NaN });
    assert.match(String(of([view(), unread])), /name a as primary/, "an epoch that is no number");
  });
});

describe("a replica that is in sync need not hold a write", () => {
  const seen = (about: Partial<SentinelView> = {}, a = 5, b = 7, isDown = false): SentinelView => ({
    ...{ primary: "p", epoch: 1, sentinels: 3, failingOver: false },
    replicas: [
      { address: "a", down: false, priority: 100, offset: a },
      { address: "b", down: isDown, priority: 100, offset: b },
    ],
    ...about,
  });
  const of = (...views: SentinelView[]) => isOutranked("a", ["b"], views);

  it("if all Sentinels would promote another one that holds it", () => {
    assert.equal(of(seen(), seen(), seen()), true);
    assert.equal(isOutranked("a", ["c"], [seen(), seen(), seen()]), false, "b holds nothing");
    assert.equal(of(seen(), seen()), false, "one says nothing");
    assert.equal(of(seen(), seen(), seen({}, 7, 7)), false, "one might take either");
    assert.equal(of(seen(), seen(), seen({}, 5, 7, true)), false, "one cannot reach b");
    assert.equal(of(seen(), seen(), seen({ failingOver: true })), false, "one has chosen");
    assert.equal(of(seen(), seen({ sentinels: 4 }), seen()), false, "there is a fourth");
    assert.equal(of(seen(), seen({ replicas: [] }), seen()), true, "one does not know it");
  });
});

describe("with three Sentinels, a write", () => {
  const seen = (name: string, about: Partial<SentinelReplica> = {}): SentinelReplica => ({
    ...{ address: `${name}:1`, down: false, priority: 100, offset: 100 },
    ...about,
  });

  /** What the Sentinels say, and an INFO that each replica answers if there is one. */
  function rig() {
    const told = { primary: "p:1", replicas: [] as SentinelReplica[], info: "", answering: 3 };
    const view = () => ({ ...told, epoch: 1, sentinels: 3, failingOver: false });
    const redis = {
      client: {},
      sentinels: { views: async () => Array.from({ length: told.answering }, view) },
      async info() {
        assert.ok(told.info);
        return told.info;
      },
    } as unknown as RedisConnector;
    const holders = new AllReplicas(redis);
    const answers = (offset: number, replicas: Record<string, number>): PipelineAnswers => {
      const inSync = Object.entries(replicas).map(([name, at]) => [name, "1", String(at)]);
      const role = ["master", offset, inSync];
      return [role, inSync.length, role].map((answer) => [null, answer] as const);
    };
    return {
      told,
      /** Why a write at offset 100 does not count, by the offsets of the replicas in sync. */
      async missing(
        inSync: Record<string, number>,
        again = answers(100, inSync),
      ): Promise<string | undefined> {
        const asked = { primary: told.primary, again: async () => again };
        return holders.assertHeld(answers(100, inSync), asked).then(
          () => undefined,
          ({ message }) => message,
        );
      },
      answers,
    };
  }

  it("counts if the replicas catch up with it, whatever was written since", async () => {
    const { told, missing, answers } = rig();
    told.replicas = [seen("a")];
    assert.equal(await missing({ a: 99 }, answers(200, { a: 150 })), undefined);
    assert.match(String(await missing({ a: 99 }, answers(200, { a: 99 }))), /do not hold it: a:1/);
  });

  it("needs a replica that was down a moment ago and is up again", async () => {
    const { told, missing } = rig();
    told.replicas = [seen("a"), seen("b", { down: true })];
    assert.equal(await missing({ a: 100 }), undefined);
    assert.equal(await missing({ a: 100 }), undefined, "it is still down");
    told.replicas = [seen("a"), seen("b")];
    assert.match(String(await missing({ a: 100 })), /do not hold it: b:1/);
  });

  it("needs the replicas of its own primary, not those of the one before", async () => {
    const { told, missing } = rig();
    told.replicas = [seen("a")];
    assert.equal(await missing({ a: 100 }), undefined);
    Object.assign(told, { primary: "q:1", replicas: [seen("a"), seen("b")] });
    assert.match(String(await missing({ a: 100 })), /do not hold it: b:1/);
  });

  it("does not need the new primary among its replicas, though that was one a moment ago", async () => {
    const { told, missing } = rig();
    told.replicas = [seen("a"), seen("b")];
    assert.equal(await missing({ a: 100, b: 100 }), undefined);
    // The machine of the old one had a Sentinel too.
    const replicas = [seen("b"), seen("p", { down: true })];
    Object.assign(told, { primary: "a:1", replicas, answering: 2 });
    assert.equal(await missing({ b: 100 }), undefined);
  });

  it("needs a replica that was left behind if no other one holds it", async () => {
    const { told, missing } = rig();
    told.info = "role:slave\r\nmaster_link_status:down\r\nmaster_link_down_since_seconds:60\r\n";
    told.replicas = [seen("a"), seen("b")];
    assert.equal(await missing({ a: 100 }), undefined, "the control");
    assert.match(String(await missing({})), /do not hold it: a:1, b:1/);
  });
});

it("in a cluster a write does not count because a node that was promoted meanwhile has no replicas", async () => {
  const client = { isCluster: true };
  const holders = new AllReplicas({ client } as unknown as RedisConnector);
  const answers = (replicas: readonly (readonly string[])[], nodes: string): PipelineAnswers => {
    const role = ["master", 100, replicas];
    return [role, replicas.length, role, nodes].map((answer) => [null, answer] as const);
  };
  const before = `p 10.0.0.1:1@2 myself,master - 0 0 1 connected 0-16383
r 10.0.0.2:1@2 slave p 0 0 1 connected
`;
  const after = `p 10.0.0.1:1@2 master,fail - 0 0 1 disconnected
r 10.0.0.2:1@2 myself,master - 0 0 2 connected 0-16383
`;
  const first = answers([["10.0.0.2", "1", "99"]], before);
  const told = (then: PipelineAnswers) =>
    holders.assertHeld(first, { primary: undefined, again: async () => then });
  await assert.rejects(told(answers([], after)), /another node answers now/);
  // The control.
  await told(answers([["10.0.0.2", "1", "100"]], before));
});

it("a write that waits for a connection is judged by the primary that it then goes to", async () => {
  const streams = ["p:1", "q:1"].map((address) => {
    const stream = Object.assign(new EventEmitter(), { bytesRead: 0 });
    new Link().follow(stream, address);
    return stream;
  });
  const role = ["master", 100, []];
  const client = Object.assign(new EventEmitter(), {
    ...{ status: "reconnecting", stream: streams[0], isCluster: false },
    pipeline: () => ({
      ...{ role() {}, wait() {} },
      exec: async () => ["written", role, 0, role].map((answer) => [null, answer]),
    }),
  });
  const view = { primary: "q:1", epoch: 2, sentinels: 1, failingOver: false, replicas: [] };
  const redis = {
    ...{ client, dedicated: () => client },
    sentinels: { views: async () => [view] },
  } as unknown as RedisConnector;
  const write = createWriter(redis, "all");
  const written = write({ queue() {} } as unknown as Script, ["key"], []);
  Object.assign(client, { status: "ready", stream: streams[1] });
  client.emit("ready");
  assert.deepEqual(await written, { answer: "written", missing: undefined });
});

describe("on a Sentinel set", { skip: withoutRedis, concurrency: true }, () => {
  async function open(t: TestContext, downAfterMs?: number) {
    const set = closing(t, await startSentinelSet([], downAfterMs));
    const join = async (minReplicas: MinReplicas): Promise<Replica> => {
      const joined = closing(t, await replica(set.url, { minReplicas }));
      let n = 0;
      const probe = () => joined.log.append("probe", numbered(n++));
      await until(async () => (await probe()).outcome === "stored");
      return joined;
    };
    return { set, join };
  }
  const replicasOf = async (set: SentinelSet) => {
    const primary = await set.masterPort();
    return set.servers.filter(({ port }) => port !== primary);
  };

  it("acknowledges nothing between the promotion of a replica and its announcement", async (t) => {
    const { set, join } = await open(t);
    const [all, one] = [await join("all"), await join(1)];
    const [promoted] = await replicasOf(set);
    // Sentinel's first step of a failover, long before it announces the new primary.
    await promoted?.command("REPLICAOF", "NO", "ONE");
    await assert.rejects(all.log.append("shop", numbered(1)), isAway);
    const { outcome } = await one.log.append("shop", numbered(2));
    assert.equal(outcome, "stored", "the control: the other replica alone acknowledges");
  });

  it("waits for a silent replica until the Sentinels know that it is down", async (t) => {
    const { set, join } = await open(t, 5_000);
    const { log } = await join("all");
    const [silent] = await replicasOf(set);
    silent?.pause();
    t.after(() => silent?.resume());
    await assert.rejects(log.append("shop", numbered(1)), isAway);
    await until(async () => (await log.append("shop", numbered(1))).outcome === "duplicate");
  });

  it("acknowledges writes without a replica that died, and without any replica", async (t) => {
    const { set, join } = await open(t);
    const { log } = await join("all");
    let n = 0;
    for (const dead of await replicasOf(set)) {
      await dead.kill();
      await until(async () => (await log.append("shop", numbered(n++))).outcome === "stored");
    }
  });
});

describe("in a cluster", { skip: withoutRedis }, () => {
  it("waits for a silent replica until most nodes know that it is down", async (t) => {
    const cluster = closing(t, await startCluster());
    const standby = closing(
      t,
      await addReplica(cluster, await ownerOf(cluster, "test:{shop}:log")),
    );
    const { log, close } = await replica(cluster.url, { minReplicas: "all" });
    t.after(() => close());
    let n = 0;
    await until(async () => (await log.append("shop", numbered(n++))).outcome === "stored");
    standby.pause();
    await assert.rejects(log.append("shop", numbered(1_000)), isAway);
    await until(async () => (await log.append("shop", numbered(1_000))).outcome === "duplicate");
  });

  it("goes to the node to which an operator moved its slot", async (t) => {
    const cluster = closing(t, await startCluster());
    const { log, close } = await replica(cluster.url, { minReplicas: "all" });
    t.after(() => close());
    assert.equal((await log.append("shop", numbered(1))).outcome, "stored", "the slots are known");
    await moveSlot(cluster, "test:{moved}:log");
    assert.equal((await log.append("moved", numbered(1))).outcome, "stored");
  });
});
