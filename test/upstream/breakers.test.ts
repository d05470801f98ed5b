import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import type { Upstream } from "../../src/upstream/upstream.ts";
import { freePort } from "../redis/server.ts";
import {
  createPayment,
  deactivate,
  failureOf,
  getPayout,
  good,
  heldLookups,
  badGateway as html,
  patient,
  type RigOptions,
  rig,
  serverRig,
} from "./rig.ts";
import { answer, json } from "./scripted-server.ts";

let reads = 0;
/** A read that shares no request with another one. */
const read = (upstream: Upstream, options = patient) =>
  getPayout(upstream, options, `payout-${reads++}`);

/** A rig whose test may change `service.script`, the answer. */
async function breakerRig(
  t: Parameters<typeof serverRig>[0],
  script: string,
  take: RigOptions["take"] = async () => {},
) {
  const service = { script };
  const made = await serverRig(t, ({ socket }) => socket.write(service.script), {
    random: () => 0,
    take,
  });
  return { ...made, service };
}

async function fail(upstream: Upstream, count: number): Promise<void> {
  for (let n = 0; n < count; n++) await failureOf(read(upstream));
}

test("failing reads open the breaker: one at a time is sent, others fail with no request and no token", async (t) => {
  const { upstream, server, taken, states, service } = await breakerRig(t, html);
  await fail(upstream, 2);
  assert.deepEqual(states, ["other open"]);

  service.script = "";
  const probe = read(upstream);
  const { socket } = await server.request(6);
  const tokens = taken.length;
  const error = await failureOf(read(upstream));
  assert.deepEqual([error.code, error.details.retryAfterMs], ["UNAVAILABLE", 1_000]);
  assert.match(error.message, /keeps failing/);
  assert.equal((await failureOf(deactivate(upstream))).code, "UNAVAILABLE");
  assert.deepEqual([server.requests.length, taken.length], [7, tokens], "no token is spent");

  service.script = good;
  socket.write(good);
  await probe;
  assert.deepEqual(states, ["other open", "other closed"]);
  await Promise.all([1, 2, 3].map(() => read(upstream)));
});

test("failing reads do not stop payments", async (t) => {
  const { upstream, service, states } = await breakerRig(t, html);
  await fail(upstream, 30);
  assert.deepEqual(states, ["other open"]);
  service.script = good;
  assert.equal((await createPayment(upstream)).id, "p");
});

test("payments that get a 502 do not open the breaker: each is sent and ends as UNKNOWN", async (t) => {
  const { upstream, server, states } = await breakerRig(t, html);
  for (let n = 0; n < 50; n++) {
    const error = await failureOf(createPayment(upstream));
    assert.deepEqual(error.details.outcomeUnknown, { externalId: "order-1" });
  }
  assert.equal(server.requests.length, 50);
  assert.deepEqual(states, []);
});

test("Error objects, Too Many Requests and a 403 do not open the breaker", async (t) => {
  const scripts = [
    json(404, '{"code":"transaction_not_found"}'),
    json(200, '{"code":"internal_error","type":"api_error"}'),
    json(500, '{"code":"internal_error"}'),
    answer(429, ""),
    answer(403, "<html>no</html>"),
  ];
  for (const script of scripts) {
    const { upstream, server, states } = await breakerRig(t, script);
    await fail(upstream, 30);
    assert.equal(server.requests.length, 30);
    assert.deepEqual(states, []);
  }
});

test("connections that are not made open the breaker for payments, and an answer of any kind closes it", async (t) => {
  const { tls, held, reached } = heldLookups();
  const { upstream, taken, states } = rig(t, "http://upstream.test", { tls });
  for (let n = 1; n <= 5; n++) {
    const failed = failureOf(createPayment(upstream));
    await reached(n);
    held.at(-1)?.(false);
    const error = await failed;
    assert.deepEqual([error.code, error.details.outcomeUnknown], ["UNAVAILABLE", undefined]);
  }
  assert.deepEqual(states, ["money open"]);
  const probe = failureOf(createPayment(upstream));
  await reached(6);
  assert.match((await failureOf(createPayment(upstream))).message, /keeps failing/);
  assert.equal(taken.length, 6);
  held.at(-1)?.(false);
  await probe;

  const port = await freePort();
  const other = rig(t, `http://127.0.0.1:${port}`);
  await Promise.all(Array.from({ length: 5 }, () => failureOf(createPayment(other.upstream))));
  assert.deepEqual(other.states, ["money open"]);
  const back = createServer((socket) => {
    socket.on("error", () => {}).on("data", () => socket.write(html));
  }).listen(port, "127.0.0.1");
  await once(back, "listening");
  t.after(() => back.close());
  assert.equal((await failureOf(createPayment(other.upstream))).code, "UNKNOWN");
  assert.deepEqual(other.states, ["money open", "money closed"]);
});

test("a call that waits for a token while another one is tried is not sent", async (t) => {
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  let waits = false;
  const { upstream, server, states, service } = await breakerRig(t, html, async () => {
    if (waits) await gate;
  });
  await fail(upstream, 1);
  waits = true;
  const queued = failureOf(read(upstream));
  waits = false;
  await fail(upstream, 1);
  assert.deepEqual(states, ["other open"]);
  service.script = "";
  const probe = failureOf(read(upstream));
  await server.request(6);
  open();
  assert.match((await queued).message, /keeps failing/);
  assert.equal(server.requests.length, 7);
  server.requests[6]?.socket.write(good);
  await probe.catch(() => {});
});
