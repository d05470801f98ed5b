import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { connect as connectSocket, type Socket as NetSocket } from "node:net";
import { describe, it, type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import slotOf from "cluster-key-slot";
import type { Cluster } from "ioredis";
import { StoreUnavailable } from "../../src/errors.ts";
import { ask, isAway } from "../../src/redis/ask.ts";
import { Link } from "../../src/redis/link.ts";
import { closing } from "../of-suite.ts";
import { tlsFile } from "../tls.ts";
import { until } from "../until.ts";
import { startCluster } from "./cluster.ts";
import { startSentinelSet } from "./sentinel.ts";
import { freePort, type RedisServer, type Settings, startRedis, withoutRedis } from "./server.ts";
import { byTls, connecting } from "./suite.ts";

interface Store {
  readonly url: string;
  readonly primary: RedisServer;
  /** All that keep data. */
  readonly servers: readonly RedisServer[];
}

/** @param downAfterMs after how long the other nodes or the Sentinels count a server as down */
type Begin = (t: TestContext, downAfterMs: number) => Promise<Store>;

/** The gateways' user, so that a test can change its password. */
const settings: Settings = [["user", "gateway on >secret ~* &* +@all"]];
const asUser = (url: string) => url.replaceAll("//", "//gateway:secret@");
const tls = { caFile: tlsFile("localhost.crt") };

const topologies: Readonly<Record<string, Begin>> = {
  async alone(t) {
    const primary = closing(t, await startRedis(settings));
    return { url: asUser(primary.url), primary, servers: [primary] };
  },
  async "alone by TLS"(t) {
    const port = await freePort();
    const primary = closing(t, await startRedis([...settings, ...byTls(port)]));
    return { url: asUser(`rediss://127.0.0.1:${port}`), primary, servers: [primary] };
  },
  async "behind Sentinel"(t, downAfterMs) {
    const { url, servers } = closing(t, await startSentinelSet(settings, downAfterMs));
    return { url: asUser(url), primary: servers[0] as RedisServer, servers };
  },
  async "as a cluster"(t, downAfterMs) {
    const { url, nodes } = closing(
      t,
      await startCluster(3, [...settings, ["cluster-node-timeout", String(downAfterMs)]]),
    );
    return { url: asUser(url), primary: nodes[0] as RedisServer, servers: nodes };
  },
};

const patientMs = 600_000;

const options = { skip: withoutRedis, concurrency: true };

describe("the link to Redis", options, () => {
  for (const [name, begin] of Object.entries(topologies)) {
    describe(name, () => {
      /**
       * Connects; the returned function writes to every node. It resolves to `away` if a node is
       * away, else to `silent` if a write failed otherwise, else to `up`.
       */
      function connect(t: TestContext, url: string) {
        const { client } = connecting(t, url, { tls });
        const questions = ["{a}", "{b}", "{c}", "{d}", "{e}", "{f}"].map((key) => async () => {
          try {
            await ask(client, () => client.set(key, "1"));
            return "up";
          } catch (error) {
            assert(error instanceof StoreUnavailable);
            return error.away ? "away" : "silent";
          }
        });
        return async () => {
          const told = new Set(await Promise.all(questions.map((question) => question())));
          return told.has("away") ? "away" : told.has("silent") ? "silent" : "up";
        };
      }

      it("is away while its primary refuses connections, and up afterwards", async (t) => {
        // A cluster has to report its missing primary itself; Sentinels must not promote another
        // one.
        const store = await begin(t, name === "as a cluster" ? 1_000 : patientMs);
        const state = connect(t, store.url);
        await until(async () => (await state()) === "up");
        await store.primary.kill();
        await until(async () => (await state()) === "away");
        await store.primary.start();
        await until(async () => (await state()) === "up");
      });

      it("is silent, not away, while its primary only accepts connections", async (t) => {
        const store = await begin(t, patientMs);
        const known = connect(t, store.url);
        await until(async () => (await known()) === "up");
        store.primary.pause();
        // A client that never received an answer reports the same.
        const fresh = connect(t, store.url);
        const untilMs = performance.now() + 3_000;
        while (performance.now() < untilMs) {
          assert.deepEqual(await Promise.all([known(), fresh()]), ["silent", "silent"]);
          await delay(50);
        }
        store.primary.resume();
        for (const state of [known, fresh]) await until(async () => (await state()) === "up");
      });

      it("is there, not away, while it refuses this client and may serve others", async (t) => {
        const store = await begin(t, patientMs);
        const known = connect(t, store.url);
        await until(async () => (await known()) === "up");
        for (const server of store.servers) {
          await server.command("ACL", "SETUSER", "gateway", "resetpass", ">another");
          await server.command("CLIENT", "KILL", "USER", "gateway");
        }
        const fresh = connect(t, store.url);
        const untilMs = performance.now() + 1_500;
        while (performance.now() < untilMs) {
          assert.deepEqual(await Promise.all([known(), fresh()]), ["silent", "silent"]);
          await delay(20);
        }
      });
    });
  }
});

test("a server that has no room for one more connection is not away, by TLS neither", {
  skip: withoutRedis,
}, async (t) => {
  const port = await freePort();
  const server = closing(t, await startRedis([["maxclients", "10"], ...byTls(port)]));
  const held = new Set<NetSocket>();
  t.after(() => {
    for (const socket of held) socket.destroy();
  });
  // Until two are refused: the server may have had another client at first.
  for (let refused = 0; refused < 2; ) {
    const socket = connectSocket(server.port, "127.0.0.1").on("error", () => {});
    held.add(socket);
    socket.write("PING\r\n");
    const [answer] = await once(socket, "data");
    if (!`${answer}`.startsWith("+PONG")) refused++;
  }
  for (const url of [server.url, `rediss://127.0.0.1:${port}`]) {
    const { client } = connecting(t, url, { tls });
    for (let tries = 0; tries < 8; tries++) {
      const asked = ask(client, () => client.ping());
      await assert.rejects(asked, ({ away }: StoreUnavailable) => !away, url);
    }
  }
});

/** A connection, and what became of it. */
class Socket extends EventEmitter {
  bytesRead = 0;
}

describe("a link, by what became of its last connection", () => {
  const failing = (code: string) => Object.assign(new Error(), { code });
  const ends: Readonly<Record<string, (socket: Socket) => void>> = {
    refused: (socket) => socket.emit("error", failing("ECONNREFUSED")),
    "refused at the address that is of use here": (socket) =>
      socket.emit("error", new AggregateError([failing("EADDRNOTAVAIL"), failing("ECONNREFUSED")])),
    late: (socket) => socket.emit("error", failing("ETIMEDOUT")),
    "not possible here": (socket) => socket.emit("error", failing("EMFILE")),
    "accepted and closed": (socket) => {
      socket.emit("connect");
      socket.emit("end");
    },
    "silent in the handshake of TLS": (socket) => socket.emit("connect"),
    "closed by TLS": (socket) => {
      socket.emit("connect");
      socket.emit("error", failing("DEPTH_ZERO_SELF_SIGNED_CERT"));
    },
    "silent until it was given up": (socket) => {
      socket.emit("connect");
      socket.emit("error", new Error("Socket timeout."));
    },
    answered: (socket) => {
      socket.emit("connect");
      socket.bytesRead = 1;
    },
  };
  for (const [is, ...connections] of [
    ["away", "refused"],
    ["away", "refused at the address that is of use here"],
    ["away", "late"],
    ["away", "accepted and closed"],
    ["away", "answered", "late"],
    ["there", "not possible here"],
    ["there", "closed by TLS"],
    ["there", "silent in the handshake of TLS"],
    ["there", "silent until it was given up"],
    ["there", "silent until it was given up", "late", "late"],
    ["there", "refused", "answered"],
  ] as const) {
    it(`is ${is}: ${connections.join(", then ")}`, () => {
      const link = new Link();
      for (const end of connections) {
        const socket = new Socket();
        link.follow(socket, "10.0.0.1:1");
        ends[end]?.(socket);
        socket.emit("close");
      }
      assert.equal(link.isAway(), is === "away");
    });
  }
});

test("the last connection says whether a server is away, though an older one ends after it", () => {
  const link = new Link();
  const [older, last] = [new Socket(), new Socket()];
  link.follow(older, "10.0.0.1:1");
  older.emit("connect");
  older.bytesRead = 1;
  link.follow(last, "10.0.0.1:1");
  last.emit("error", Object.assign(new Error(), { code: "ECONNREFUSED" }));
  last.emit("close");
  assert.equal(link.isAway(), true);
  older.emit("close");
  assert.equal(link.isAway(), true);
});

test("of a cluster only the node that serves a key counts for it", () => {
  const nodes = [1, 2].map((port) => ({ options: { host: "10.0.0.1", port } }));
  const slots = Array.from({ length: 16_384 }, (_, slot) => [`10.0.0.1:${slot < 8_192 ? 1 : 2}`]);
  const client = Object.assign(new EventEmitter(), { isCluster: true, slots, nodes: () => nodes });
  const link = new Link().of(client as unknown as Cluster);
  const [there, here] = ["foo{b}", "{a}"];
  assert.deepEqual(
    [there, here].map((key) => slotOf(key) < 8_192),
    [true, false],
  );
  const [refusing, serving] = [new Socket(), new Socket()];
  link.follow(refusing, "10.0.0.1:1");
  link.follow(serving, "10.0.0.1:2");
  serving.emit("connect");
  serving.bytesRead = 1;
  refusing.emit("error", Object.assign(new Error(), { code: "ECONNREFUSED" }));
  refusing.emit("close");
  const states = () => [link.isAway(), link.isAway(there), link.isAway(here)];
  assert.deepEqual(states(), [true, true, false]);
  const silent = new Socket();
  link.follow(silent, "10.0.0.1:2");
  silent.emit("connect");
  assert.deepEqual(states(), [false, false, false], "the silent one may be the primary");
  silent.bytesRead = 1;
  const again = new Socket();
  link.follow(again, "10.0.0.1:1");
  again.emit("connect");
  assert.deepEqual(states(), [false, false, false]);
  const error = new StoreUnavailable(new Error(), { away: true, broken: false });
  assert.equal(isAway(error, client as unknown as Cluster, here), false);
});
