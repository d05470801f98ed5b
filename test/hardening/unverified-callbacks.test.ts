import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { sign } from "../../src/wire/signature.ts";
import { startTestGateway } from "../start.ts";

const mebibyte = 1024 * 1024;

test("unverified bodies use at most their budget, and signed callbacks are accepted", async () => {
  const gateway = await startTestGateway({ MAX_BUFFERED_BYTES: `${8 * mebibyte}` });
  const { hostname, port } = new URL(gateway.publicUrl);
  const sockets = Array.from({ length: 200 }, () => connect(Number(port), hostname));
  try {
    await Promise.all(sockets.map((socket) => once(socket, "connect")));
    for (const socket of sockets) {
      socket.on("error", () => {});
      socket.resume();
      socket.write(
        `POST /callbacks/default/payments HTTP/1.1\r\nHost: ${hostname}:${port}\r\n` +
          `X-Service-Signature: ${"A".repeat(27)}=\r\nContent-Length: ${mebibyte}\r\n\r\n`,
      );
      socket.write(Buffer.alloc(65_536, "x"));
    }
    for (let n = 0; n < 10; n++) {
      const body = `{"external_id":"order-${n}","details":{"payment_id":"p-${n}","status":"success"}}`;
      const answer = await fetch(`${gateway.publicUrl}/callbacks/default/payments`, {
        method: "POST",
        headers: { "x-service-signature": sign(Buffer.from(body), "sandbox-password") },
        body,
      });
      assert.equal(answer.status, 200);
      assert.equal((await fetch(`${gateway.adminUrl}/healthz`)).status, 200);
    }
    // The budget of 8 MiB has room for some 120 bodies of 64 KiB.
    const deadline = Date.now() + 30_000;
    while ((await overloaded(gateway.adminUrl)) < 70) {
      assert.ok(Date.now() < deadline, "the others are told to come again");
      await delay(50);
    }
  } finally {
    for (const socket of sockets) socket.destroy();
    await gateway.stop();
  }
});

async function overloaded(adminUrl: string): Promise<number> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text();
  const line = /^payments_gateway_callbacks_total\{.*verdict="overloaded".*\} (\d+)$/m.exec(text);
  return Number(line?.[1] ?? 0);
}
