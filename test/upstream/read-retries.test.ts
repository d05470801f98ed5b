import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { GatewayError } from "../../src/errors.ts";
import { until } from "../until.ts";
import {
  createPayment,
  deactivate,
  deleteWalletItem,
  failureOf,
  getPayout,
  badGateway as html,
  doneOrder as payout,
  resendCallback,
  serverRig,
  updateSubscription,
} from "./rig.ts";
import { answer, json } from "./scripted-server.ts";

test("a read whose connection is lost twice is answered at the third attempt", async (t) => {
  const { upstream, server, taken, settled, calls } = await serverRig(t, ({ socket }) => {
    if (server.requests.length < 3) socket.resetAndDestroy();
    else socket.write(payout);
  });
  assert.equal((await getPayout(upstream)).status, "done");
  assert.equal(server.requests.length, 3);
  assert.deepEqual([taken.length, settled.length, calls.length], [3, 3, 3]);
});

test("a read is not sent again before the pause that the service asks for", async (t) => {
  const dates = [
    "Date: Sun, 29 Nov 2026 10:00:00 GMT",
    "Retry-After: Sun, 29 Nov 2026 10:00:07 GMT",
  ];
  for (const pause of [["Retry-After: 7"], dates]) {
    const { upstream, server } = await serverRig(t, answer(503, "later", ...pause));
    const { code, details } = await failureOf(getPayout(upstream));
    assert.deepEqual([code, details.retryAfterMs], ["UNAVAILABLE", 7_000]);
    assert.equal(server.requests.length, 1);
  }
});

test("a write that fails is sent once", async (t) => {
  const { upstream, server } = await serverRig(t, ({ socket }) => socket.resetAndDestroy());
  const writes = [createPayment, resendCallback, deleteWalletItem, updateSubscription, deactivate];
  await Promise.allSettled(writes.map((write) => write(upstream)));
  assert.equal(server.requests.length, writes.length);
});

test("all attempts of a read together take no longer than UPSTREAM_TIMEOUT", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const timeoutMs = 60_000;
  const { upstream, server } = await serverRig(t, () => {}, { timeoutMs, random: () => 0 });
  const failed = failureOf(getPayout(upstream));
  const first = await server.request(0);
  // The client measures the first attempt with performance.now(), which is not mocked.
  const heldMs = 50;
  const sinceMs = performance.now();
  while (performance.now() < sinceMs + heldMs) await new Promise(setImmediate);
  first.socket.write(html);
  while (server.requests.length < 2) {
    t.mock.timers.tick(0);
    await new Promise(setImmediate);
  }
  // A second attempt with the whole UPSTREAM_TIMEOUT would not end yet.
  t.mock.timers.tick(timeoutMs - heldMs);
  assert.equal((await failed).code, "UNAVAILABLE");
  assert.equal(server.requests.length, 2);
});

for (const [what, script, random, requests] of [
  ["is retried at most twice", html, 0, 3],
  // A pause of a hundred seconds.
  ["is not retried if the pause would outlast UPSTREAM_TIMEOUT", html, 1_000, 1],
  [
    "is not sent again if the service answers with an Error object",
    json(500, '{"code":"internal_error"}'),
    0,
    1,
  ],
] as const) {
  test(`a read ${what}`, async (t) => {
    const { upstream, server } = await serverRig(t, script, { random: () => random });
    assert.equal((await failureOf(getPayout(upstream))).code, "UNAVAILABLE");
    assert.equal(server.requests.length, requests);
  });
}

test("a caller that leaves during the pause ends it, and the read is not sent again", async (t) => {
  // A pause of five seconds.
  const { upstream, server, calls } = await serverRig(t, html, { random: () => 50 });
  const caller = new AbortController();
  const ended = failureOf(getPayout(upstream, { signal: caller.signal }));
  await until(() => calls.length === 1);
  caller.abort();
  assert.equal((await ended).code, "CANCELLED");
  await failureOf(createPayment(upstream));
  assert.deepEqual(
    server.requests.map(({ line }) => line.slice(0, 4)),
    ["GET ", "POST"],
  );
});

test("close ends a pause with the failure that led to it", async (t) => {
  const { upstream, server, calls } = await serverRig(t, html, { random: () => 50 });
  const ended = failureOf(getPayout(upstream));
  await until(() => calls.length === 1);
  await upstream.close();
  assert.match((await ended).message, /HTTP status 502/);
  assert.equal(server.requests.length, 1);
});

test("a closed client sends nothing: it is the gateway that is away, not the service", async (t) => {
  const { upstream, server } = await serverRig(t, payout);
  await upstream.close();
  for (const send of [getPayout, createPayment]) {
    const { code, details } = await failureOf(send(upstream));
    assert.deepEqual([code, details.reason], ["UNAVAILABLE", "SHUTTING_DOWN"]);
  }
  assert.equal(server.requests.length, 0);
});

test("a retry that gets no token ends with the previous failure", async (t) => {
  let takes = 0;
  const { upstream, server } = await serverRig(t, html, {
    take: async () => {
      if (takes++ > 0) throw new GatewayError("RESOURCE_EXHAUSTED", "later");
    },
  });
  const error = await failureOf(getPayout(upstream));
  assert.equal(error.code, "UNAVAILABLE");
  assert.match(error.message, /HTTP status 502/);
  assert.equal(server.requests.length, 1);
});

test("retries are at most a tenth of many failing reads, and ten more", async (t) => {
  let failed = false;
  // Every second request fails: the breaker stays closed.
  const { upstream, server, states } = await serverRig(
    t,
    ({ socket }) => {
      failed = !failed;
      socket.write(failed ? html : payout);
    },
    { random: () => 0 },
  );
  const reads = 200;
  for (let n = 0; n < reads; n++) await getPayout(upstream).catch(() => {});
  const retries = server.requests.length - reads;
  assert.ok(retries >= reads / 10 && retries <= reads / 10 + 10, `${retries} retries`);
  assert.deepEqual(states, []);
});

test("callers that share a read share its retries", async (t) => {
  const { upstream, server } = await serverRig(t, ({ socket }) => {
    socket.write(server.requests.length === 1 ? html : payout);
  });
  const answers = await Promise.all([1, 2, 3].map(() => getPayout(upstream)));
  assert.equal(new Set(answers).size, 1);
  assert.equal(server.requests.length, 2);
});

test("a caller that leaves during a retry closes the retry's socket", async (t) => {
  const { upstream, server } = await serverRig(t, (request) => {
    if (server.requests.length === 1) request.socket.write(html);
  });
  const caller = new AbortController();
  const ended = failureOf(getPayout(upstream, { signal: caller.signal }));
  const { socket } = await server.request(1);
  const closed = once(socket, "close");
  caller.abort();
  assert.equal((await ended).code, "CANCELLED");
  await closed;
});
