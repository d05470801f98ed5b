import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { sign } from "../../src/wire/signature.ts";
import { type Receiver, startReceiver } from "./harness.ts";

const mebibyte = 1024 * 1024;

/** Sockets that each begin a body of 1 MiB, send 64 KiB of it, and then stall. */
async function stall(receiver: Receiver, count: number): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, () => connect(receiver.port, "127.0.0.1"));
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  for (const socket of sockets) {
    socket.on("error", () => {});
    socket.write(
      "POST /callbacks/shop/payments HTTP/1.1\r\nHost: gateway\r\n" +
        `X-Service-Signature: ${"A".repeat(27)}=\r\nContent-Length: ${mebibyte}\r\n\r\n`,
    );
    socket.write("x".repeat(65_536));
  }
  return sockets;
}

const body = (n: number) =>
  JSON.stringify({
    external_id: `order-${n}`,
    operation: "payment",
    details: { payment_id: `pay-${n}`, status: "success" },
  });

async function sendGenuine(receiver: Receiver, count: number): Promise<number[]> {
  const statuses: number[] = [];
  for (let n = 0; n < count; n++) {
    const headers = { "x-service-signature": sign(Buffer.from(body(n)), "password") };
    statuses.push((await receiver.send({ headers, body: body(n) })).status);
  }
  return statuses;
}

const overloaded = (receiver: Receiver) =>
  receiver.verdicts.filter(({ verdict }) => verdict === "overloaded").length;

test("callbacks keep arriving while unsigned bodies fill the budget", {
  timeout: 60_000,
}, async () => {
  await using receiver = await startReceiver({ maxBytes: mebibyte });
  const next = receiver.nextVerdict();
  const sockets = await stall(receiver, 64);
  const answers = sockets.map((socket) => once(socket, "data"));
  try {
    assert.equal((await next).verdict, "overloaded");
    assert.deepEqual(new Set(await sendGenuine(receiver, 20)), new Set([200]));
    // At 64 KiB each, 16 bodies fit; the others are answered 503.
    while (overloaded(receiver) < 48) await receiver.nextVerdict();
    const [answer] = await Promise.race(answers);
    assert.match(`${answer}`, /^HTTP\/1\.1 503 /);
    assert.match(`${answer}`, /retry-after: 5/i);
  } finally {
    for (const socket of sockets) socket.destroy();
  }
});

test("control: within the budget no body is dropped", { timeout: 60_000 }, async () => {
  await using receiver = await startReceiver({ bodyTimeoutMs: 1_000 });
  const sockets = await stall(receiver, 64);
  try {
    assert.deepEqual(new Set(await sendGenuine(receiver, 5)), new Set([200]));
    while (receiver.verdicts.length < 69) await receiver.nextVerdict();
    assert.equal(overloaded(receiver), 0);
  } finally {
    for (const socket of sockets) socket.destroy();
  }
});
