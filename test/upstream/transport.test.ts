import assert from "node:assert/strict";
import { getEventListeners, once } from "node:events";
import { createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { GatewayError } from "../../src/errors.ts";
import { listen } from "../listen.ts";
import { closing } from "../of-suite.ts";
import { freePort } from "../redis/server.ts";
import { valuesOf } from "../values-of.ts";
import {
  createPayment,
  failureOf,
  getOperation,
  getPayout,
  good,
  heldLookups,
  hostedPayment,
  moneyCalls,
  patient,
  resendCallback,
  rig,
  serverRig,
} from "./rig.ts";
import { answer, json, scriptedServer } from "./scripted-server.ts";

/** Options that count calls of `onSent`. */
function counting(signal = patient.signal) {
  const counted = { signal, sent: 0, onSent: () => void counted.sent++ };
  return counted;
}

test("a connection is reused for later calls", async (t) => {
  const { upstream, server } = await serverRig(t, good);
  for (let i = 0; i < 5; i++) {
    await createPayment(upstream);
    await getPayout(upstream);
  }
  assert.equal(server.requests.length, 10);
  // undici frees a connection one turn after its answer, so a call in the same turn opens another.
  assert.ok(server.connections <= 2, `${server.connections} connections`);
});

test("concurrent calls do not wait for each other's answers", async (t) => {
  const { upstream, server } = await serverRig(t, () => {
    if (server.requests.length < 3) return;
    for (const { socket } of server.requests) socket.write(good);
  });
  await Promise.all([1, 2, 3].map(() => createPayment(upstream)));
  assert.equal(server.connections, 3);
});

/** A server that does this at the first bytes of each connection. @returns its port */
async function atFirstBytes(t: TestContext, react: (socket: Socket) => void): Promise<number> {
  const server = createServer((socket) => {
    socket.on("error", () => {}).once("data", () => react(socket));
  });
  t.after(() => server.close());
  return listen(server);
}

const withoutTls = (t: TestContext, react: (socket: Socket) => void) =>
  atFirstBytes(t, react).then((port) => `https://127.0.0.1:${port}`);
const unreachable: Array<[string, url: (t: TestContext) => Promise<string>, cause: RegExp]> = [
  [
    "a refused connection",
    async () => `http://127.0.0.1:${await freePort()}`,
    /^nothing listens there \(ECONNREFUSED\)$/,
  ],
  ["a name that is not found", async () => "http://upstream.invalid", /ENOTFOUND|EAI_AGAIN/],
  [
    "a reset TLS handshake",
    (t) => withoutTls(t, (socket) => socket.resetAndDestroy()),
    /^the connection was closed \(ECONNRESET\)$/,
  ],
  [
    "plain HTTP in place of TLS",
    (t) => withoutTls(t, (socket) => socket.end("HTTP/1.1 400 No TLS\r\n\r\n")),
    /^it does not speak TLS \(ERR_SSL_/,
  ],
  [
    "a refused TLS handshake",
    (t) => withoutTls(t, (socket) => socket.end(Buffer.from([0x15, 3, 3, 0, 2, 2, 40]))),
    /^it ends the handshake: .+ \(ERR_SSL_.+_ALERT_HANDSHAKE_FAILURE\)$/,
  ],
];
for (const [what, url, cause] of unreachable) {
  test(`${what} is UNAVAILABLE: nothing was sent, and the budget hears nothing`, async (t) => {
    const { upstream, taken, settled, causes } = rig(t, await url(t));
    const options = counting();
    for (const call of [...Object.values(moneyCalls), resendCallback]) {
      const error = await failureOf(call(upstream, options));
      assert.equal(error.code, "UNAVAILABLE");
      assert.equal(error.details.outcomeUnknown, undefined);
    }
    assert.equal(options.sent, 0);
    assert.equal((await failureOf(getPayout(upstream))).code, "UNAVAILABLE");
    assert.equal(taken.length, 5 + 3, "a read is tried again");
    assert.deepEqual(settled, []);
    for (const told of causes) assert.match(told ?? "", cause);
  });
}

test("a connection that is not made within the time-out is UNAVAILABLE", async (t) => {
  const { upstream, settled } = rig(t, "http://upstream.test", {
    timeoutMs: 20,
    tls: { lookup: () => {} },
  });
  const options = counting();
  assert.equal((await failureOf(createPayment(upstream, options))).code, "UNAVAILABLE");
  assert.equal(options.sent, 0);
  assert.deepEqual(settled, []);
});

test("a money call whose caller gives up before the connection is made is never written", async (t) => {
  const { tls, held, reached, release } = heldLookups();
  const at = (url: string) => url.replace("127.0.0.1", "upstream.test");
  const { upstream, server, settled } = await serverRig(t, good, { tls, at });
  const caller = new AbortController();
  const options = counting(caller.signal);
  const abandoned = failureOf(createPayment(upstream, options));
  await reached(1);
  caller.abort();
  assert.equal((await abandoned).code, "CANCELLED");

  // On a busy machine the deadline passes before the second look-up: then there is none.
  const late = failureOf(createPayment(upstream, { signal: AbortSignal.timeout(100) }));
  assert.equal((await late).code, "DEADLINE_EXCEEDED");
  assert.deepEqual(settled, []);

  const begun = held.length;
  const last = getPayout(upstream);
  await reached(begun + 1);
  release();
  await last;
  // By now every connection is made, and has had its turn to write or serves one of these calls.
  await Promise.all([1, 2, 3].map(() => createPayment(upstream)));
  assert.equal(options.sent, 0);
  assert.deepEqual(
    valuesOf(server.requests, "line"),
    ["GET /api/payouts/v1/info?external_id=order-1 HTTP/1.1"].concat(
      Array(3).fill("POST /api/payments/v1/new HTTP/1.1"),
    ),
  );
});

test("a call whose deadline has passed is not sent", async (t) => {
  const { upstream, server, settled } = await serverRig(t, good);
  await createPayment(upstream);
  for (const call of [createPayment, getPayout]) {
    const error = await failureOf(call(upstream, { signal: AbortSignal.abort(deadlinePassed) }));
    assert.equal(error.code, "DEADLINE_EXCEEDED");
  }
  assert.equal(server.requests.length, 1);
  assert.equal(settled.length, 1);
});

test("a refusal by the rate limit reaches the caller unchanged, and nothing is sent", async (t) => {
  const refusal = new GatewayError("RESOURCE_EXHAUSTED", "later", { retryAfterMs: 5 });
  const take = () => Promise.reject(refusal);
  const { upstream, settled, calls } = rig(t, "http://127.0.0.1:1", { take });
  for (const call of [createPayment, getPayout]) {
    assert.equal(await failureOf(call(upstream)), refusal);
  }
  assert.deepEqual([settled, calls], [[], []]);
});

test("a connection lost within the answer makes a read UNAVAILABLE and a payment UNKNOWN", async (t) => {
  const { upstream, settled, causes } = await serverRig(t, ({ socket }) => {
    socket.end('HTTP/1.1 200 OK\r\nX-RateLimit-Remaining: 4\r\nContent-Length: 99\r\n\r\n{"id":');
  });
  assert.equal((await failureOf(getPayout(upstream))).code, "UNAVAILABLE");
  assert.equal((await failureOf(createPayment(upstream))).code, "UNKNOWN");
  const seen = ["observe", { limit: undefined, remaining: "4", reset: undefined }];
  assert.deepEqual(settled, Array(4).fill(seen), "the headers that came count");
  assert.deepEqual(causes, Array(4).fill("the connection was closed (UND_ERR_SOCKET)"));
});

const ends: Array<[how: string, end: (socket: Socket) => void]> = [
  ["reset", (socket) => socket.resetAndDestroy()],
  ["closed", (socket) => socket.end()],
];
for (const [how, end] of ends) {
  test(`a money call whose connection is ${how} anywhere in its answer is UNKNOWN, sent once`, async (t) => {
    const whole = json(200, '{"external_id":"order-1","id":"p-1"}');
    let bytes = 0;
    const { upstream, server } = await serverRig(
      t,
      ({ socket }) => void socket.write(whole.slice(0, bytes), () => end(socket)),
    );
    const calls = Object.values(moneyCalls);
    for (; bytes < whole.length; bytes += 3) {
      const options = counting();
      const error = await failureOf(calls[bytes % calls.length]!(upstream, options));
      assert.deepEqual([error.code, options.sent], ["UNKNOWN", 1], `${bytes} bytes`);
      assert.deepEqual(error.details.outcomeUnknown, { externalId: "order-1" });
      assert.equal(server.requests.length, bytes / 3 + 1);
    }
    // Control: a whole answer.
    const { id } = await createPayment(upstream);
    assert.equal(id, "p-1");
  });
}

test("a money call that is cut off while it is written is UNKNOWN, and not written again", async (t) => {
  let connections = 0;
  const port = await atFirstBytes(t, (socket) => {
    connections++;
    socket.resetAndDestroy();
  });
  const { upstream } = rig(t, `http://127.0.0.1:${port}`);
  const large = { ...hostedPayment, description: "x".repeat(3_000_000) };
  const options = counting();
  const error = await failureOf(upstream.createPayment(large, options));
  assert.deepEqual([error.code, options.sent, connections], ["UNKNOWN", 1, 1]);
});

test("UPSTREAM_TIMEOUT ends a call without an answer and closes its socket", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { upstream, server, calls, causes } = await serverRig(t, () => {}, { timeoutMs: 300 });
  const outcomes = [
    [getPayout, "UNAVAILABLE"],
    [resendCallback, "UNAVAILABLE"],
    [createPayment, "UNKNOWN"],
  ] as const;
  for (const [n, [call, code]] of outcomes.entries()) {
    const ended = failureOf(call(upstream));
    const { socket } = await server.request(n);
    const closed = once(socket, "close");
    t.mock.timers.tick(300);
    assert.equal((await ended).code, code);
    await closed;
  }
  assert.deepEqual(valuesOf(calls, "outcome"), ["UNAVAILABLE", "UNAVAILABLE", "UNKNOWN"]);
  assert.deepEqual(causes, Array(3).fill("no answer in time"));
});

test("UPSTREAM_TIMEOUT covers the body: a body that trickles does not extend it", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let trickled = Promise.withResolvers<void>();
  const { upstream, server } = await serverRig(
    t,
    ({ socket }) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
      let bytes = 0;
      const timer = setInterval(() => {
        socket.write(" ");
        if (++bytes === 5) trickled.resolve();
      }, 5);
      socket.on("close", () => clearInterval(timer));
    },
    { timeoutMs: 300 },
  );
  for (const [n, [call, code]] of [
    [getPayout, "UNAVAILABLE"] as const,
    [createPayment, "UNKNOWN"] as const,
  ].entries()) {
    trickled = Promise.withResolvers();
    const ended = failureOf(call(upstream));
    await server.request(n);
    t.mock.timers.tick(200);
    await trickled.promise;
    t.mock.timers.tick(100);
    assert.equal((await ended).code, code);
  }
});

const deadlinePassed = new DOMException("the deadline passed", "TimeoutError");
const departures = [
  ["the caller leaves", undefined, "CANCELLED"],
  ["its deadline passes", deadlinePassed, "DEADLINE_EXCEEDED"],
] as const;

for (const [when, reason, code] of departures) {
  test(`the socket of a call that moves no money closes when ${when}`, async (t) => {
    for (const call of [getPayout, resendCallback]) {
      const { upstream, server, settled } = await serverRig(t, () => {});
      const caller = new AbortController();
      const ended = failureOf(call(upstream, { signal: caller.signal }));
      const { socket } = await server.request(0);
      const closed = once(socket, "close");
      caller.abort(reason);
      assert.equal((await ended).code, code);
      await closed;
      assert.deepEqual(settled, [["observe", {}]]);
    }
  });
}

test("a money call that was sent continues after its caller left", async (t) => {
  const { upstream, server } = await serverRig(t, () => {});
  const caller = new AbortController();
  const paid = upstream.createPayment(hostedPayment, counting(caller.signal));
  const { socket } = await server.request(0);
  caller.abort(deadlinePassed);
  socket.write(json(200, '{"id":"p-1"}'));
  assert.equal((await paid).id, "p-1");
});

test("onSent is called once per money call, before the service can see its first byte", async (t) => {
  let sent = 0;
  const { upstream } = await serverRig(t, ({ socket }) => {
    socket.write(json(200, `{"id":"${sent}"}`));
  });
  for (let n = 1; n <= 3; n++) {
    const payment = await upstream.createPayment(hostedPayment, {
      ...patient,
      onSent: () => void sent++,
    });
    assert.equal(payment.id, String(n));
  }
});

test("an onSent that throws keeps the request from being sent", async (t) => {
  const { upstream, server, settled } = await serverRig(t, json(200, '{"id":"p"}'));
  const onSent = () => {
    throw new Error("the intent could not be recorded");
  };
  const error = await failureOf(createPayment(upstream, { ...patient, onSent }));
  assert.equal(error.code, "UNAVAILABLE");
  const refusal = new GatewayError("ABORTED", "another is in flight");
  const refused = createPayment(upstream, {
    ...patient,
    onSent: () => {
      throw refusal;
    },
  });
  assert.equal(await failureOf(refused), refusal);
  assert.deepEqual(settled, []);
  await getPayout(upstream);
  assert.equal(server.requests.length, 1);
});

test("redirects are not followed", async (t) => {
  const target = closing(t, await scriptedServer(good));
  const { upstream, causes } = await serverRig(t, answer(307, "", `Location: ${target.url}/`));
  assert.equal((await failureOf(createPayment(upstream))).code, "UNKNOWN");
  assert.deepEqual(causes, ["HTTP 307, and the answer was not understood"]);
  assert.equal(target.connections, 0);
});

test("close lets calls in flight finish and refuses later ones", async (t) => {
  const { upstream, server } = await serverRig(t, () => {});
  const paid = upstream.createPayment(hostedPayment, patient);
  const { socket } = await server.request(0);
  const closed = upstream.close();
  const late = await failureOf(createPayment(upstream));
  assert.equal(late.code, "UNAVAILABLE");
  socket.write(json(200, '{"id":"p-1"}'));
  assert.equal((await paid).id, "p-1");
  await closed;
});

test("calls leave no listener on the caller's signal", async (t) => {
  const { signal } = new AbortController();
  const listeners = () => getEventListeners(signal, "abort").length;
  let during = 0;
  const { upstream } = await serverRig(t, ({ socket }) => {
    during += listeners();
    socket.write(json(200, '{"id":"p"}'));
  });
  await getOperation(upstream, { signal });
  assert.ok(during > 0, "control: a read listens while it waits");
  assert.equal(listeners(), 0);

  await upstream.createPayment(hostedPayment, { signal });
  assert.equal(listeners(), 0);
});
