import assert from "node:assert/strict";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { sendEvent } from "../gateway/live-rig.ts";
import { type SlowClient, transports, type Urls } from "../gateway/slow-clients.ts";
import { freePorts, killSpawned, spawnCli } from "../gateway/spawn.ts";

const slowReaders = 200;
const fastReaders = 24;
const eventsPerSecond = 50;
const eventBytes = 8_192;
const calmSeconds = 20;
const mostSeconds = 240;
/** A copy of the unread events for each of 200 readers would take gigabytes. */
const mostGrowthMb = 250;

/**
 * The long form of test/gateway/slow-readers.test.ts, on a gateway that is a process of its own.
 */
test(`${slowReaders} sockets that stop reading at ${eventsPerSecond} events a second are cut`, {
  timeout: 600_000,
}, async (t) => {
  const { child, ready } = spawnCli(["serve"], {
    ...freePorts,
    LOG_LEVEL: "warn",
    // Sockets that do not answer pings would be cut for that.
    HEARTBEAT_INTERVAL: "1h",
  });
  const { public: publicUrl = "", rpc: rpcUrl = "" } = await ready;
  const urls: Urls = { publicUrl, rpcUrl };
  const open: SlowClient[] = [];
  t.after(() => {
    for (const client of open) client.close();
    killSpawned();
  });
  const connect = (count: number) => {
    const all = Object.values(transports);
    const clients = Array.from({ length: count }, (_, i) => all[i % all.length]?.(urls));
    open.push(...(clients as SlowClient[]));
    return clients as SlowClient[];
  };

  const sentAtMs: number[] = [];
  const send = async () => {
    const at = Date.now();
    await sendEvent(urls, "order", sentAtMs.length, "refund", "x".repeat(eventBytes));
    sentAtMs.push(at);
  };
  const pace = async (seconds: number, done = () => false) => {
    const end = Date.now() + seconds * 1_000;
    for (let next = Date.now(); Date.now() < end && !done(); next += 1_000 / eventsPerSecond) {
      await delay(Math.max(next - Date.now(), 0));
      await send();
    }
  };
  const openAll = async (clients: SlowClient[]) => {
    while (!clients.every(({ cursors }) => cursors.length > 0)) {
      await send();
      await delay(20);
    }
  };
  const rssMb = () =>
    Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]) / 1_024;

  const fast = connect(fastReaders);
  await openAll(fast);
  /**
   * 99th percentile of the fast readers' delay, for events from index `from` on, in milliseconds.
   */
  const p99 = (from: number) => {
    const late = fast.flatMap(({ cursors, readAtMs }) => {
      const missed = sentAtMs.length - cursors.length;
      return readAtMs
        .map((at, i) => at - (sentAtMs[i + missed] ?? 0))
        .slice(Math.max(from - missed, 0));
    });
    return late.toSorted((a, b) => a - b)[Math.floor(late.length * 0.99)] ?? 0;
  };
  const all = () => fast.every(({ cursors }) => cursors.at(-1) === fast[0]?.cursors.at(-1));
  const settled = async () => {
    for (const end = Date.now() + 20_000; ; await delay(50)) {
      const newest = Math.max(...fast.map(({ cursors }) => cursors.length));
      if (all() && newest === fast[0]?.cursors.length) return;
      assert.ok(Date.now() < end, "the fast readers fall behind");
    }
  };

  // Control: as many additional clients, which read.
  const crowd = connect(slowReaders);
  await openAll(crowd);
  const calmFrom = sentAtMs.length;
  await pace(calmSeconds);
  await settled();
  const calm = p99(calmFrom);
  for (const client of crowd) client.close();

  const slow = connect(slowReaders);
  await openAll(slow);
  for (const client of slow) client.pause();
  const sockets = () =>
    readdirSync(`/proc/${child.pid}/fd`).filter((fd) => isSocket(`/proc/${child.pid}/fd/${fd}`))
      .length;
  const before = { rss: rssMb(), sockets: sockets() };
  let peak = before.rss;
  const sampling = setInterval(() => {
    peak = Math.max(peak, rssMb());
  }, 250);
  const stormFrom = sentAtMs.length;
  const resets = new Set<SlowClient>();
  for (const client of slow) void client.ended.then(() => resets.add(client));
  // HTTP/2 streams are reset one by one; other slow clients lose their sockets.
  const overHttp1 = slow.filter(({ localPort }) => localPort !== undefined).length;
  const allCut = () =>
    resets.size >= slow.length - overHttp1 && sockets() <= before.sockets - overHttp1;
  await pace(mostSeconds, allCut);
  clearInterval(sampling);
  const stormSeconds = (sentAtMs.length - stormFrom) / eventsPerSecond;
  const cut = allCut();
  await settled();
  const storm = p99(stormFrom);
  t.diagnostic(`${slow.length} cut: ${cut}, after ${stormSeconds} s`);
  t.diagnostic(`p99 of the others: ${calm} ms among readers, ${storm} ms among slow readers`);
  t.diagnostic(`memory: ${Math.round(before.rss)} MB before, at most ${Math.round(peak)} MB`);
  assert.ok(cut, "all slow readers are cut");
  assert.ok(peak - before.rss < mostGrowthMb);
  assert.ok(storm <= Math.max(2 * calm, 20));

  for (const client of slow) client.resume();
  const ends = await Promise.all(slow.map(({ ended }) => ended));
  const counts = Map.groupBy(ends, ({ code }) => code);
  t.diagnostic([...counts].map(([code, { length }]) => `${length} ${code}`).join(", "));

  // Ten at a time, the clients resume behind their last event and have missed nothing.
  const whole = fast[0]?.cursors ?? [];
  const kinds = Object.values(transports);
  for (let i = 0; i < slow.length; i += 10) {
    const some = slow.slice(i, i + 10).map((client, n) => {
      const again = kinds[(i + n) % kinds.length]?.(urls, client.cursors.at(-1)) as SlowClient;
      open.push(again);
      return { client, again };
    });
    for (const end = Date.now() + 60_000; ; await delay(20)) {
      if (some.every(({ again }) => again.cursors.at(-1) === whole.at(-1))) break;
      assert.ok(Date.now() < end, "those who were cut get the rest");
    }
    for (const { client, again } of some) {
      const seen = [...client.cursors, ...again.cursors];
      assert.deepEqual(seen, whole.slice(whole.indexOf(seen[0] ?? "")));
      again.close();
    }
  }
});

/** Whether an open file of a process is a socket; it may be closed by now. */
function isSocket(path: string): boolean {
  try {
    return readlinkSync(path).startsWith("socket:");
  } catch {
    return false;
  }
}
