import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { GatewayError } from "../../src/errors.ts";
import { UpdateSubscriptionRequestSchema } from "../../src/gen/payments/v1/subscription_service_pb.ts";
import { DeleteWalletItemRequestSchema } from "../../src/gen/payments/v1/wallet_service_pb.ts";
import {
  createPayment,
  deactivate,
  failureOf,
  getPayout,
  patient,
  type RigOptions,
  resendCallback,
  serverRig,
} from "./rig.ts";
import { answer, json } from "./scripted-server.ts";

const payout = json(200, '{"external_id":"order-1","status":"done"}');

/** A service that closes the connection of so many requests in place of an answer. */
async function losing(t: Parameters<typeof serverRig>[0], times: number, options?: RigOptions) {
  const made = await serverRig(
    t,
    ({ socket }) => {
      if (made.server.requests.length <= times) socket.resetAndDestroy();
      else socket.write(payout);
    },
    options,
  );
  return made;
}

test("a read whose connection is lost is answered at the second attempt, with a token of its own", async (t) => {
  const { upstream, server, taken, settled, calls } = await losing(t, 1);
  assert.equal((await getPayout(upstream)).status, "done");
  assert.equal(server.requests.length, 2);
  assert.deepEqual([taken.length, settled.length, calls.length], [2, 2, 2]);
});

test("a read whose connection is lost twice fails", async (t) => {
  const { upstream, server } = await losing(t, 2);
  assert.equal((await failureOf(getPayout(upstream))).code, "UNAVAILABLE");
  assert.equal(server.requests.length, 2);
});

test("a read that was answered is not sent again, however it was answered", async (t) => {
  for (const script of [
    answer(502, "<html>Bad Gateway</html>"),
    json(500, '{"code":"internal_error"}'),
    'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"id":',
  ]) {
    const { upstream, server } = await serverRig(t, ({ socket }) => socket.end(script));
    assert.equal((await failureOf(getPayout(upstream))).code, "UNAVAILABLE");
    assert.equal(server.requests.length, 1);
  }
});

test("a service says when a read may be tried again", async (t) => {
  const dates = [
    "Date: Sun, 29 Nov 2026 10:00:00 GMT",
    "Retry-After: Sun, 29 Nov 2026 10:00:07 GMT",
  ];
  for (const pause of [["Retry-After: 7"], dates]) {
    const { upstream } = await serverRig(t, answer(503, "later", ...pause));
    const { code, details } = await failureOf(getPayout(upstream));
    assert.deepEqual([code, details.retryAfterMs], ["UNAVAILABLE", 7_000]);
  }
});

test("a write that fails is sent once", async (t) => {
  const { upstream, server } = await serverRig(t, ({ socket }) => socket.resetAndDestroy());
  const writes = [
    createPayment(upstream),
    resendCallback(upstream),
    upstream.deleteWalletItem(create(DeleteWalletItemRequestSchema, { optionId: "a" }), patient),
    upstream.updateSubscription(
      create(UpdateSubscriptionRequestSchema, { subscriptionId: "s" }),
      patient,
    ),
    deactivate(upstream),
  ];
  await Promise.allSettled(writes);
  assert.equal(server.requests.length, writes.length);
});

test("both attempts of a read together take no longer than UPSTREAM_TIMEOUT", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const timeoutMs = 60_000;
  const { upstream, server } = await serverRig(t, () => {}, { timeoutMs });
  const failed = failureOf(getPayout(upstream));
  const first = await server.request(0);
  // The client measures the first attempt with performance.now(), which is not mocked.
  const heldMs = 50;
  const sinceMs = performance.now();
  while (performance.now() < sinceMs + heldMs) await new Promise(setImmediate);
  first.socket.resetAndDestroy();
  await server.request(1);
  // A second attempt with the whole UPSTREAM_TIMEOUT would not end yet.
  t.mock.timers.tick(timeoutMs - heldMs);
  assert.equal((await failed).code, "UNAVAILABLE");
  assert.equal(server.requests.length, 2);
});

test("a second attempt that gets no token ends with the failure of the first", async (t) => {
  let takes = 0;
  const { upstream, server } = await losing(t, 1, {
    take: async () => {
      if (takes++ > 0) throw new GatewayError("RESOURCE_EXHAUSTED", "later");
    },
  });
  const error = await failureOf(getPayout(upstream));
  assert.equal(error.code, "UNAVAILABLE");
  assert.match(error.message, /connection was lost/);
  assert.equal(server.requests.length, 1);
});

test("a caller that leaves during the second attempt closes its socket", async (t) => {
  const { upstream, server } = await serverRig(t, (request) => {
    if (server.requests.length === 1) request.socket.resetAndDestroy();
  });
  const caller = new AbortController();
  const ended = failureOf(getPayout(upstream, { signal: caller.signal }));
  const { socket } = await server.request(1);
  const closed = once(socket, "close");
  caller.abort();
  assert.equal((await ended).code, "CANCELLED");
  await closed;
});
