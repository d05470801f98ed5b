import assert from "node:assert/strict";
import diagnostics from "node:diagnostics_channel";
import type net from "node:net";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { startTestGateway } from "../start.ts";
import { scrapeOf } from "../telemetry/scrape.ts";
import { until } from "../until.ts";
import { sendEvents } from "./live-rig.ts";
import { type SlowClient, transports } from "./slow-clients.ts";

/** Ports of clients that have a connection open to a listener of this process. */
const connected = new Set<number | undefined>();
diagnostics.subscribe("net.server.socket", (message) => {
  const { socket } = message as { socket: net.Socket };
  const { remotePort } = socket;
  connected.add(remotePort);
  socket.once("close", () => connected.delete(remotePort));
});

const names = Object.keys(transports);
/** So large that some thousand events fill the megabytes that the system buffers for a connection. */
const eventBytes = 8_192;
const maxEvents = 12_000;

test("a slow reader is cut on every transport, delays no other, and resumes without a gap", {
  timeout: 120_000,
}, async (t) => {
  const gateway = await startTestGateway({ HEARTBEAT_INTERVAL: "1h" });
  const open: SlowClient[] = [];
  t.after(async () => {
    for (const client of open) client.close();
    await gateway.stop();
  });
  const clientsOf = (after?: string[]) => {
    const clients = names.map((name, i) => {
      const connect = transports[name] as (typeof transports)[string];
      return connect(gateway, after?.[i]);
    });
    open.push(...clients);
    return clients;
  };
  let sent = 0;
  const send = async (count: number) => {
    const from = sent;
    sent += count;
    await sendEvents(gateway, from, count, eventBytes);
  };
  const all = (clients: SlowClient[], cursor: string | undefined) => () =>
    clients.every(({ cursors }) => cursors.at(-1) === cursor);

  const fast = clientsOf();
  const late = clientsOf();
  const slow = clientsOf();
  // All streams are open once each has seen an event.
  while (!open.every(({ cursors }) => cursors.length > 0)) await send(1);
  const caughtUp = async (clients: SlowClient[]) => {
    const [first] = fast;
    const before = first?.cursors.length ?? 0;
    await send(1);
    await until(() => (first?.cursors.length ?? 0) > before, "the event comes");
    await until(all(clients, first?.cursors.at(-1)), "everybody has it");
  };
  await caughtUp(open);

  for (const client of [...late, ...slow]) client.pause();
  // A paused client does not notice the end of its connection.
  const isCut = ({ localPort }: SlowClient) => localPort !== undefined && !connected.has(localPort);
  while (!slow.every(isCut) && sent < maxEvents) {
    // Only as fast as the fast clients read.
    await send(50);
    await caughtUp(fast);
    if (sent < 500 || late.length === 0) continue;
    // Control: a client that resumes in time gets the buffered events and is not cut.
    for (const client of late) client.resume();
    await caughtUp([...fast, ...late]);
    for (const client of late.splice(0)) {
      assert.ok(!isCut(client));
      client.close();
    }
  }
  await until(() => slow.every(isCut), "the slow ones are cut");
  t.diagnostic(`${sent} events`);
  const wanted = { sse: 1, websocket: 1, connect: 1 };
  for (let counted: object = {}; !isDeepStrictEqual(counted, wanted); ) {
    const { value } = await scrapeOf(gateway);
    const cuts = (transport: string) => value("slow_consumers_cut_total", { transport });
    counted = Object.fromEntries(Object.keys(wanted).map((name) => [name, cuts(name)]));
  }
  await caughtUp(fast);

  for (const client of slow) client.resume();
  const ends = await Promise.all(slow.map(({ ended }) => ended));
  t.diagnostic(names.map((name, i) => `${name}: ${ends[i]?.code}`).join(", "));
  const again = clientsOf(slow.map(({ cursors }) => cursors.at(-1) ?? ""));
  const rest = all(again, fast[0]?.cursors.at(-1));
  await until(rest, "those who were cut have the rest");

  const whole = fast[0]?.cursors ?? [];
  for (const [i, name] of names.entries()) {
    const from = whole.slice(whole.indexOf(fast[i]?.cursors[0] ?? ""));
    assert.deepEqual(fast[i]?.cursors, from, `${name}, fast`);
    const seen = [...(slow[i]?.cursors ?? []), ...(again[i]?.cursors ?? [])];
    assert.deepEqual(seen, whole.slice(whole.indexOf(seen[0] ?? "")), `${name}, slow`);
    assert.ok((again[i]?.cursors.length ?? 0) >= 1_000, `${name} had its buffer full`);
  }
});
