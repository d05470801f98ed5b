import assert from "node:assert/strict";
import { once } from "node:events";
import net from "node:net";
import { after, describe, it, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { killSpawned } from "../gateway/spawn.ts";
import { costOf, startTarget, type Target, words } from "../hardening/attacked.ts";
import {
  callHeaders,
  flag,
  frame,
  frameType,
  h2Peer,
  headerBlock,
  settingId,
  settings,
  uint32,
} from "../hardening/h2-peer.ts";
import { scrapeOf } from "../telemetry/scrape.ts";
import { until } from "../until.ts";

/**
 * The long form of test/hardening/http2.test.ts, which has each limit: attacks that run for a while
 * from several connections, which reconnect when they are cut. They may not grow the process, and a
 * neighbour's calls go on almost as fast as before.
 */
const attackMs = 30_000;
const connections = 8;
const timeout = 120_000;
/** How much an attack may add to the process's memory, uncollected garbage included. */
const maxGrownMiB = 400;
/** Latencies below this depend on the machine more than on the gateway. */
const noticedMs = 100;

const id = (i: number) => 2 * i + 1;
const ping = () => frame(frameType.ping, 0, 0, Buffer.alloc(8));

interface Attack {
  /** Frames of the n-th step; `call` is the header block of a call. */
  readonly flood: (i: number, call: Buffer) => Buffer;
  /** After this many steps the attack waits, or `leaves`. Default: no limit. */
  readonly steps?: number;
  readonly settings?: Buffer;
  readonly deaf?: boolean;
  /**
   * It closes its connection after its steps and reconnects at once. Nothing that it does is
   * forbidden: how long others wait is only reported.
   */
  readonly leaves?: true;
}

const begun = (i: number, block: Buffer) => frame(frameType.headers, flag.endHeaders, id(i), block);
const body = (i: number, bytes: Buffer, flags = 0) => frame(frameType.data, flags, id(i), bytes);
const whole = (i: number, call: Buffer) =>
  Buffer.concat([begun(i, call), body(i, Buffer.from("{}"), flag.endStream)]);
const watch = callHeaders("/grpc.health.v1.Health/Watch", { "content-type": "application/grpc" });

const attacks: Readonly<Record<string, Attack>> = {
  PING: { flood: ping },
  "PING, and no reading": { flood: ping, deaf: true },
  SETTINGS: { flood: () => frame(frameType.settings, 0, 0, settings([1, 4096])) },
  "rapid reset": {
    flood: (i, call) =>
      Buffer.concat([begun(i, call), frame(frameType.rstStream, 0, id(i), uint32(8))]),
  },
  CONTINUATION: {
    flood: (i, call) =>
      i === 0
        ? frame(frameType.headers, 0, 1, call)
        : frame(frameType.continuation, 0, 1, headerBlock({ [`x-${i}`]: "y" })),
  },
  "empty DATA": { flood: (i, call) => (i === 0 ? begun(0, call) : frame(frameType.data, 0, 1)) },
  "frames of no known type": { flood: () => frame(frameType.unknown, 0, 0) },
  "streams beyond the limit": { flood: begun },
  "windows that never open": {
    flood: whole,
    steps: 900,
    settings: settings([settingId.initialWindowSize, 0]),
  },
  "bodies that never end": {
    flood: (i, call) => Buffer.concat([begun(i, call), body(i, Buffer.from("{"))]),
    steps: 900,
  },
  "calls that are left": { flood: whole, steps: 100, leaves: true },
  "thousands of idle streams": {
    flood: (i) => Buffer.concat([begun(i, watch), body(i, Buffer.alloc(5), flag.endStream)]),
    steps: 900,
  },
};

after(() => killSpawned());

const portOf = (url: string) => Number(new URL(url).port);

/** One connection of an attack, until it is cut or its time is over. */
async function attackOnce({ rpc, keys }: Target, attack: Attack, untilMs: number): Promise<void> {
  const { flood, steps = Number.POSITIVE_INFINITY } = attack;
  const call = callHeaders("/payments.v1.PaymentService/GetPayment", {
    authorization: `Bearer ${keys.full}`,
  });
  const peer = await h2Peer(portOf(rpc), attack.settings ? { settings: attack.settings } : {});
  peer.socket.setMaxListeners(0);
  if (attack.deaf) peer.socket.pause();
  for (let i = 0; performance.now() < untilMs && !peer.isClosed; ) {
    if (i >= steps && attack.leaves) break;
    if (i >= steps) {
      await Promise.race([peer.closed, delay(100)]);
      continue;
    }
    const frames: Buffer[] = [];
    for (const end = Math.min(i + 200, steps); i < end; i++) frames.push(flood(i, call));
    const taken = peer.socket.write(Buffer.concat(frames));
    peer.frames.length = 0;
    // Leave a part of the machine to the gateway.
    await (taken
      ? delay(1)
      : Promise.race([once(peer.socket, "drain").catch(() => {}), peer.closed, delay(100)]));
  }
  peer.socket.destroy();
}

async function openFiles({ admin }: Pick<Target, "admin">): Promise<number> {
  const { samples } = await scrapeOf({ adminUrl: admin });
  return samples.find(({ name }) => name === "process_open_fds")?.value ?? Number.NaN;
}

/** Runs an attack on a gateway of its own, and asserts what it may cost. */
async function endures(
  t: TestContext,
  attack: (target: Target) => Promise<unknown>,
  { env = {}, holdsTimes = true }: { env?: Record<string, string>; holdsTimes?: boolean } = {},
): Promise<void> {
  const target = await startTarget(undefined, env);
  t.after(() => target.end());
  const before = await openFiles(target);
  const calm = await costOf(target, () => delay(attackMs / 4));
  const cost = await costOf(target, () => attack(target));
  t.diagnostic(`${words(calm)} before; ${words(cost)}`);
  assert.ok(!cost.died && cost.grownMiB <= maxGrownMiB, words(cost));
  assert.equal(cost.failed, 0, "a neighbour's call failed");
  if (holdsTimes) assert.ok(cost.p99Ms <= Math.max(2 * calm.p99Ms, noticedMs), words(cost));
  await until(async () => (await openFiles(target)) <= before + 2, "it closes what was opened");
}

describe("an HTTP/2 attack", () => {
  for (const [name, attack] of Object.entries(attacks)) {
    it(name, { timeout }, (t) =>
      endures(
        t,
        (target) => {
          const untilMs = performance.now() + attackMs;
          const repeat = async () => {
            while (performance.now() < untilMs) {
              await attackOnce(target, attack, untilMs);
              if (!attack.leaves) await delay(100);
            }
          };
          return Promise.all(Array.from({ length: connections }, repeat));
        },
        { holdsTimes: !attack.leaves },
      ),
    );
  }
});

/**
 * Opens `n` sockets that send `first`, and then `drip` every 500 ms until they are cut.
 * @returns how long each socket lived, in milliseconds
 */
async function hold(port: number, n: number, first: string, drip: string): Promise<number[]> {
  const begunMs = performance.now();
  const lives = Array.from({ length: n }, async () => {
    const socket = net.connect(port, "127.0.0.1").resume();
    socket.on("error", () => {});
    socket.write(first);
    const dripping = setInterval(() => drip && socket.write(drip), 500);
    await new Promise((resolve) => socket.once("close", resolve));
    clearInterval(dripping);
    return performance.now() - begunMs;
  });
  return Promise.all(lives);
}

describe("every listener cuts slow sockets in time", () => {
  const head = "POST / HTTP/1.1\r\nHost: x\r\n";
  const slow = {
    "silent connections": { first: "", drip: "", withinMs: 20_000 },
    "headers that drip": { first: `${head}X: `, drip: "y", withinMs: 20_000 },
    "bodies that drip": {
      first: `${head}Content-Length: 1000\r\n\r\n`,
      drip: "y",
      withinMs: 40_000,
    },
  };
  for (const [name, { first, drip, withinMs }] of Object.entries(slow)) {
    it(name, { timeout }, (t) =>
      endures(t, async ({ rpc, publicUrl, admin }) => {
        const urls = [rpc, publicUrl, admin];
        const lives = await Promise.all(urls.map((url) => hold(portOf(url), 200, first, drip)));
        const longestMs = Math.max(...lives.flat());
        t.diagnostic(`the last of 600 was cut after ${(longestMs / 1_000).toFixed(1)} s`);
        assert.ok(longestMs < withinMs);
      }),
    );
  }

  it("connections beyond MAX_CONNECTIONS are cut", { timeout }, (t) =>
    endures(
      t,
      async ({ publicUrl, admin }) => {
        const lives = hold(portOf(publicUrl), 2_000, "", "");
        await delay(2_000);
        assert.ok((await openFiles({ admin })) < 700);
        const { sum } = await scrapeOf({ adminUrl: admin });
        assert.ok(sum("connections_cut_total", { limit: "connections" }) >= 1_400);
        await lives;
      },
      { env: { MAX_CONNECTIONS: "500" } },
    ),
  );
});
