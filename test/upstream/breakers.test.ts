import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import type { Upstream } from "../../src/upstream/upstream.ts";
import { closedPort } from "../listen.ts";
import { createPayment, deactivate, failureOf, getPayout, patient, rig, serverRig } from "./rig.ts";
import { answer, json } from "./scripted-server.ts";

let reads = 0;
/** A read that shares no request with another one. */
const read = (upstream: Upstream, options = patient) =>
  getPayout(upstream, options, `payout-${reads++}`);

const html = answer(502, "<html>Bad Gateway</html>");
const good = json(200, '{"id":"p","currency":"UAH"}');

/** A rig in virtual time without jitter. A test may change `service.script`, the answer. */
async function breakerRig(t: Parameters<typeof serverRig>[0], script: string) {
  const time = { now: 0 };
  const service = { script };
  const made = await serverRig(t, ({ socket }) => socket.write(service.script), {
    now: () => time.now,
    random: () => 0,
  });
  return { ...made, time, service };
}

async function fail(upstream: Upstream, count: number): Promise<void> {
  for (let n = 0; n < count; n++) await failureOf(read(upstream));
}

test("failing reads open the breaker: later calls fail at once, with no request and no token", async (t) => {
  const { upstream, server, taken, states } = await breakerRig(t, html);
  await fail(upstream, 20);
  assert.deepEqual(states, ["other open"]);
  const sent = server.requests.length;
  assert.equal(sent, 20);
  const tokens = taken.length;

  const error = await failureOf(read(upstream));
  assert.equal(error.code, "UNAVAILABLE");
  assert.equal(error.details.retryAfterMs, 1_000);
  assert.equal((await failureOf(deactivate(upstream))).code, "UNAVAILABLE");
  assert.equal(server.requests.length, sent);
  assert.equal(taken.length, tokens, "no token is spent");
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

test("an open breaker sends one probe at a time and closes once a probe is answered", async (t) => {
  const { upstream, server, service, states, time } = await breakerRig(t, html);
  await fail(upstream, 20);
  time.now += 1_000;
  await failureOf(read(upstream));
  assert.equal(server.requests.length, 21, "the probe is not tried again");
  assert.equal((await failureOf(read(upstream))).details.retryAfterMs, 2_000);

  time.now += 2_000;
  service.script = good;
  const together = await Promise.allSettled([1, 2, 3, 4, 5].map(() => read(upstream)));
  assert.equal(together.filter(({ status }) => status === "fulfilled").length, 1);
  assert.equal(server.requests.length, 22);
  assert.deepEqual(
    states,
    ["open", "halfOpen", "open", "halfOpen", "closed"].map((state) => `other ${state}`),
  );
  await read(upstream);
});

test("Error objects, Too Many Requests and a 403 do not open the breaker", async (t) => {
  const scripts = [
    json(404, '{"code":"transaction_not_found"}'),
    json(200, '{"code":"internal_error","type":"api_error"}'),
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

test("a read that always fails with an Error object does not stop other reads", async (t) => {
  const { upstream, service, states } = await breakerRig(t, json(500, '{"code":"internal_error"}'));
  await fail(upstream, 30);
  assert.deepEqual(states, []);
  service.script = good;
  assert.equal((await read(upstream)).currency, "UAH");
});

test("refused connections open the breaker for payments until one connection succeeds", async (t) => {
  const port = await closedPort();
  const time = { now: 0 };
  const { upstream, taken, states } = rig(t, `http://127.0.0.1:${port}`, {
    now: () => time.now,
    random: () => 0,
  });
  for (let n = 0; n < 25; n++) {
    const error = await failureOf(createPayment(upstream));
    assert.equal(error.code, "UNAVAILABLE");
    assert.equal(error.details.outcomeUnknown, undefined);
    assert.match(error.message, n < 20 ? /cannot be reached/ : /keeps failing/);
    assert.equal(error.details.retryAfterMs, 1_000);
  }
  assert.equal(taken.length, 20);
  assert.deepEqual(states, ["money open"]);

  // The service is reachable again, though it answers with HTML: payments are sent.
  const back = createServer((socket) => {
    socket.on("error", () => {}).on("data", () => socket.write(html));
  }).listen(port, "127.0.0.1");
  await once(back, "listening");
  t.after(() => back.close());
  time.now += 1_000;
  for (let n = 0; n < 25; n++)
    assert.equal((await failureOf(createPayment(upstream))).code, "UNKNOWN");
  assert.deepEqual(states, ["money open", "money halfOpen", "money closed"]);
});

test("a call that waits for a token while the breaker opens is not sent", async (t) => {
  let open = () => {};
  let waits = false;
  const gate = new Promise<void>((resolve) => (open = resolve));
  const { upstream, server, settled, states } = await serverRig(t, html, {
    random: () => 0,
    take: async () => {
      if (waits) await gate;
    },
  });
  await fail(upstream, 3);
  waits = true;
  const queued = failureOf(read(upstream));
  waits = false;
  await fail(upstream, 20);
  assert.deepEqual(states, ["other open"]);
  const sent = server.requests.length;
  open();
  assert.equal((await queued).details.retryAfterMs !== undefined, true);
  assert.equal(server.requests.length, sent);
  assert.deepEqual(settled.at(-1), ["release"]);
});
