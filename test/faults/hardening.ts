import assert from "node:assert/strict";
import { once } from "node:events";
import net from "node:net";
import { after, describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { killSpawned, spawnGateway } from "../gateway/spawn.ts";
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
import { footprint, startNeighbour } from "../hardening/neighbour.ts";

/**
 * The long form of test/hardening: each attack runs for a while from several connections, which
 * reconnect when they are cut, while a neighbour (another client) keeps calling. FAULTS=long
 * asserts the neighbour's latencies; the short form is part of `npm test`.
 */
const long = process.env.FAULTS === "long";
const attackMs = long ? 20_000 : 500;
const connections = 8;
/** One attack; test/hardening/http2.test.ts has each limit, heap.test.ts calls that are left. */
const shortForm = ["rapid reset"];
const timeout = 120_000;

/** Latencies below this depend on the machine more than on the gateway. */
const noticedMs = 100;
/** How much an attack may add to the process's memory, uncollected garbage included. */
const moreMb = 400;

const getPayment = "/payments.v1.PaymentService/GetPayment";
const call = callHeaders(getPayment);
const health = callHeaders("/grpc.health.v1.Health/Watch", {
  "content-type": "application/grpc",
});
const id = (i: number) => 2 * i + 1;
const begun = (i: number, headers = call) =>
  frame(frameType.headers, flag.endHeaders, id(i), headers);
const body = (i: number, bytes: Buffer, flags = 0) => frame(frameType.data, flags, id(i), bytes);
const whole = (i: number) => Buffer.concat([begun(i), body(i, Buffer.from("{}"), flag.endStream)]);
const ping = () => frame(frameType.ping, 0, 0, Buffer.alloc(8));

interface Attack {
  /** Frames of the n-th step. */
  readonly flood: (i: number) => Buffer;
  /** After this many steps the attack waits, or `leaves`. Default: no limit. */
  readonly steps?: number;
  readonly settings?: Buffer;
  readonly deaf?: boolean;
  /**
   * It closes its connection after its steps and reconnects at once. Nothing that it does is
   * forbidden: memory and the neighbour's answers are asserted, the neighbour's latencies are only
   * reported.
   */
  readonly leaves?: true;
}

const attacks: Readonly<Record<string, Attack>> = {
  PING: { flood: ping },
  "PING, and no reading": { flood: ping, deaf: true },
  SETTINGS: { flood: () => frame(frameType.settings, 0, 0, settings([1, 4096])) },
  "rapid reset": {
    flood: (i) => Buffer.concat([begun(i), frame(frameType.rstStream, 0, id(i), uint32(8))]),
  },
  CONTINUATION: {
    flood: (i) =>
      i === 0
        ? frame(frameType.headers, 0, 1, call)
        : frame(frameType.continuation, 0, 1, headerBlock({ [`x-${i}`]: "y" })),
  },
  "empty DATA": { flood: (i) => (i === 0 ? begun(0) : frame(frameType.data, 0, 1)) },
  "frames of no known type": { flood: () => frame(frameType.unknown, 0, 0) },
  "streams beyond the limit": { flood: (i) => begun(i) },
  "windows that never open": {
    flood: whole,
    steps: 900,
    settings: settings([settingId.initialWindowSize, 0]),
  },
  "bodies that never end": {
    flood: (i) => Buffer.concat([begun(i), body(i, Buffer.from("{"))]),
    steps: 900,
  },
  "calls that are left": { flood: whole, steps: 100, leaves: true },
  "thousands of idle streams": {
    flood: (i) => Buffer.concat([begun(i, health), body(i, Buffer.alloc(5), flag.endStream)]),
    steps: 900,
  },
};

after(() => killSpawned());

// The short form's machine is busy with other tests, so that the limit would refuse neighbours.
const gateway = (env: Record<string, string> = {}) =>
  spawnGateway({ ...(long && { MAX_CONCURRENT_CALLS: "1000" }), ...env });

const portOf = (url: string) => Number(new URL(url).port);

/** One connection of an attack, until it is cut or its time is over. */
async function attackOnce(port: number, attack: Attack, untilMs: number): Promise<void> {
  const { flood, steps = Number.POSITIVE_INFINITY } = attack;
  const peer = await h2Peer(port, attack.settings ? { settings: attack.settings } : {});
  peer.socket.setMaxListeners(0);
  if (attack.deaf) peer.socket.pause();
  for (let i = 0; performance.now() < untilMs && !peer.isClosed; ) {
    if (i >= steps && attack.leaves) break;
    if (i >= steps) {
      await Promise.race([peer.closed, delay(100)]);
      continue;
    }
    const frames: Buffer[] = [];
    for (const end = Math.min(i + 200, steps); i < end; i++) frames.push(flood(i));
    const taken = peer.socket.write(Buffer.concat(frames));
    peer.frames.length = 0;
    // Leave a part of the machine to the gateway.
    await (taken
      ? delay(1)
      : Promise.race([once(peer.socket, "drain").catch(() => {}), peer.closed, delay(100)]));
  }
  peer.socket.destroy();
}

/**
 * Runs an attack beside a neighbour. Asserts that the neighbour's calls succeed and that the
 * gateway's memory and open files stay bounded; with `holdsTimes` also the neighbour's latencies.
 */
async function measure(
  t: { diagnostic(message: string): void },
  { rpcUrl, adminUrl }: { rpcUrl: string; adminUrl: string },
  attack: (untilMs: number) => Promise<unknown>,
  holdsTimes = long,
): Promise<void> {
  const neighbour = await startNeighbour(rpcUrl);
  // Warm up, so that the JIT compiler is not measured.
  await delay(1_000);
  await neighbour.lap();
  await delay(attackMs / 2);
  const before = await neighbour.lap();
  const rest = await footprint(adminUrl);

  let peakMb = 0;
  const watch = setInterval(async () => {
    peakMb = Math.max(peakMb, (await footprint(adminUrl)).rssMb);
  }, 500);
  const attacked = attack(performance.now() + attackMs * 1.5);
  await delay(attackMs / 2);
  const onset = await neighbour.lap();
  await attacked;
  clearInterval(watch);
  const during = await neighbour.stop();

  let held = await footprint(adminUrl);
  for (let i = 0; i < 300 && held.files > rest.files + 2; i++) {
    await delay(100);
    held = await footprint(adminUrl);
  }
  const ms = (value: number) => value.toFixed(1);
  t.diagnostic(
    `p99 ${ms(before.p99)} → ${ms(during.p99)} ms (at first ${ms(onset.p99)}), ` +
      `p50 ${ms(before.p50)} → ${ms(during.p50)} ms, RSS ${rest.rssMb.toFixed(0)} → ${peakMb.toFixed(0)} MB, cuts ${JSON.stringify(held.cuts)}`,
  );
  assert.equal(onset.failed + during.failed, 0, "a neighbour's call failed");
  assert.ok(peakMb < rest.rssMb + moreMb, `${peakMb} MB`);
  assert.ok(held.files <= rest.files + 2, `${held.files} files, before ${rest.files}`);
  if (holdsTimes) {
    assert.ok(during.p99 <= Math.max(2 * before.p99, noticedMs), `p99 ${ms(during.p99)} ms`);
  }
}

describe("the neighbours of an HTTP/2 attack notice little", () => {
  for (const [name, attack] of Object.entries(attacks)) {
    if (!long && !shortForm.includes(name)) continue;
    it(name, { timeout }, async (t) => {
      const target = await gateway();
      const port = portOf(target.rpcUrl);
      await measure(
        t,
        target,
        (untilMs) =>
          Promise.all(
            Array.from({ length: connections }, async () => {
              while (performance.now() < untilMs) {
                await attackOnce(port, attack, untilMs);
                if (!attack.leaves) await delay(100);
              }
            }),
          ),
        long && !attack.leaves,
      );
      await target.kill();
    });
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

describe("every listener cuts slow sockets in time", { skip: !long }, () => {
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
    it(name, { timeout }, async (t) => {
      const target = await gateway();
      await measure(t, target, async () => {
        const urls = [target.rpcUrl, target.publicUrl, target.adminUrl];
        const lives = await Promise.all(urls.map((url) => hold(portOf(url), 200, first, drip)));
        const longestMs = Math.max(...lives.flat());
        t.diagnostic(`the last of 600 was cut after ${(longestMs / 1_000).toFixed(1)} s`);
        assert.ok(longestMs < withinMs);
      });
      await target.kill();
    });
  }

  it("connections beyond MAX_CONNECTIONS are cut", { timeout }, async (t) => {
    const target = await gateway({ MAX_CONNECTIONS: "500" });
    const lives = hold(portOf(target.publicUrl), 2_000, "", "");
    await delay(2_000);
    const { files, cuts } = await footprint(target.adminUrl);
    t.diagnostic(`${files} files with 2,000 sockets knocking, cuts ${JSON.stringify(cuts)}`);
    assert.ok(files < 700);
    assert.ok((cuts.connections ?? 0) >= 1_400);
    await lives;
    await target.kill();
  });
});
