import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { createServer } from "node:net";
import { type TestContext, test } from "node:test";
import { GatewayError } from "../../src/errors.ts";
import type { Upstream } from "../../src/upstream/upstream.ts";
import { listen } from "../listen.ts";
import { between, seeded } from "../random.ts";
import { type Fault, type FaultServer, faultServer } from "./fault-server.ts";
import { hostedPayment, moneyCalls, patient, rig, type Send } from "./rig.ts";

const tries = Number(process.env.FAULT_TRIES ?? 60);
const seed = Number(process.env.FAULT_SEED ?? randomInt(2 ** 32));
const lanes = 30;

/** A payment whose request takes many packets. */
const largePayment =
  (bytes: number): Send =>
  (upstream, options = patient, externalId = "") =>
    upstream.createPayment(
      { ...hostedPayment, externalId, description: "x".repeat(bytes) },
      options,
    );

/** The result of one call that moves money. */
interface Tried {
  readonly externalId: string;
  readonly sent: number;
  readonly error: GatewayError | undefined;
}

/**
 * Makes `count` calls that move money, in parallel lanes. A call that ends as UNKNOWN is sent again
 * until `attempts` are used.
 */
async function pay(
  upstream: Upstream,
  random: () => number,
  count: number,
  attempts = 1,
): Promise<Tried[]> {
  const tried: Tried[] = [];
  const calls = Object.values(moneyCalls);
  const lane = async (first: number) => {
    for (let n = first; n < count; n += lanes) {
      const externalId = `order-${n}`;
      const call =
        random() < 0.1
          ? largePayment(between(random, 1, 300_000))
          : calls[between(random, 0, calls.length - 1)]!;
      let sent = 0;
      let error: GatewayError | undefined;
      for (let attempt = 0; attempt < attempts; attempt++) {
        const options = { ...patient, onSent: () => void sent++ };
        error = await call(upstream, options, externalId).then(
          () => undefined,
          (failure: unknown) => {
            if (failure instanceof GatewayError) return failure;
            throw failure;
          },
        );
        if (error?.code !== "UNKNOWN") break;
      }
      tried.push({ externalId, sent, error });
    }
  };
  await Promise.all(Array.from({ length: lanes }, (_, first) => lane(first)));
  return tried;
}

/**
 * Asserts that each call is sent and charged at most once, and that a call that fails after a
 * charge ends as UNKNOWN.
 */
function assertOnce(
  tried: Tried[],
  { arrivals, charges }: Pick<FaultServer, "arrivals" | "charges">,
) {
  for (const { externalId, sent, error } of tried) {
    const arrived = arrivals.get(externalId) ?? 0;
    const charged = charges.get(externalId) ?? 0;
    const what = `${externalId}: ${error?.code ?? "paid"}, ${sent} sent, ${arrived} arrived`;
    assert.ok(charged <= 1 && arrived <= 1 && sent <= 1, `more than once: ${what}`);
    if (charged > 0 && error) assert.equal(error.code, "UNKNOWN", what);
    assert.equal(error?.details.outcomeUnknown !== undefined, error?.code === "UNKNOWN", what);
    if (error?.code === "UNKNOWN") {
      assert.equal(sent, 1, what);
      assert.deepEqual(error.details.outcomeUnknown, { externalId });
    }
    if (sent === 0) assert.equal(arrived, 0, what);
  }
}

async function faulty(t: TestContext, pick: (random: () => number) => Fault, timeoutMs = 10_000) {
  t.diagnostic(`FAULT_SEED=${seed}`);
  const random = seeded(seed);
  const server = await faultServer(random, () => pick(random));
  t.after(() => server.close());
  const { upstream, calls } = rig(t, server.url, { timeoutMs, random });
  return { server, upstream, random, calls };
}

const faults = [
  ...(["resetInRequest", "resetAfterRequest", "closeAfterRequest", "resetInAnswer"] as const),
  ...(["closeInAnswer", "stall", "stallInAnswer", "errorObject"] as const),
] satisfies readonly Exclude<Fault, "none">[];

test("faults of every kind, mixed with successful calls, never charge twice", async (t) => {
  const { server, upstream, random } = await faulty(
    t,
    (random) => (random() < 0.5 ? "none" : faults[between(random, 0, faults.length - 1)]!),
    500,
  );
  const tried = await pay(upstream, random, tries * 5);
  assertOnce(tried, server);
  const paid = tried.filter(({ error }) => !error).length;
  assert.ok(paid > tries && paid < tries * 4, `${paid} paid`);
});

test("a money call whose TLS handshake fails at any point is never sent", async (t) => {
  t.diagnostic(`FAULT_SEED=${seed}`);
  const random = seeded(seed);
  const server = createServer((socket) => {
    socket.on("error", () => {});
    const manner = between(random, 0, 3);
    if (manner === 0) socket.resetAndDestroy();
    else if (manner === 1) socket.once("data", () => socket.resetAndDestroy());
    else if (manner === 2) socket.once("data", () => socket.end("HTTP/1.1 400 No TLS\r\n\r\n"));
    else socket.once("data", () => socket.end(Buffer.from([0x15, 3, 3, 0, 2, 2, 40])));
  });
  const port = await listen(server);
  t.after(() => server.close());
  const { upstream, settled } = rig(t, `https://127.0.0.1:${port}`, {
    breaker: { minimumCalls: Infinity },
  });
  const tried = await pay(upstream, Math.random, tries);
  assertOnce(tried, { arrivals: new Map(), charges: new Map() });
  for (const { error, sent } of tried) assert.deepEqual([error?.code, sent], ["UNAVAILABLE", 0]);
  assert.deepEqual(settled, Array(tries).fill(["release"]));
});

test("control: sending again after an unknown outcome charges twice, and the check detects it", async (t) => {
  const { server, upstream, random } = await faulty(t, () => "resetAfterRequest");
  const tried = await pay(upstream, random, tries, 2);
  assert.throws(() => assertOnce(tried, server), /more than once/);
});
