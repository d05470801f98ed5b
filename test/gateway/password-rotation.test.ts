import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { sign } from "../../src/wire/signature.ts";
import { startTestGateway } from "../start.ts";

const [oldPassword, newPassword] = ["old-password", "new-password"];

/** The steps in SECURITY.md, and the passwords that sign callbacks during each of them. */
const steps: [what: string, password: string, previous: string, signed: readonly string[]][] = [
  ["before", oldPassword, "", [oldPassword]],
  ["the new one is known beforehand", oldPassword, newPassword, [oldPassword, newPassword]],
  ["the new one is in use", newPassword, oldPassword, [newPassword, oldPassword]],
  ["the old one is dropped", newPassword, "", [newPassword]],
];

for (const [what, password, previous, signed] of steps) {
  test(`a rotation of the merchant's password loses no callback: ${what}`, async (t) => {
    const send = await start(t, password, previous);
    for (const [n, signer] of signed.entries()) assert.equal(await send(`order-${n}`, signer), 200);
    assert.equal(await send("forged", "another-password"), 401);
  });
}

test("outside of a rotation only the current password is accepted", async (t) => {
  assert.equal(await (await start(t, oldPassword, ""))("order", newPassword), 401);
  assert.equal(await (await start(t, newPassword, ""))("order", oldPassword), 401);
});

async function start(t: TestContext, password: string, previous: string) {
  const gateway = await startTestGateway({
    UPSTREAM_PASSWORD: password,
    UPSTREAM_PREVIOUS_PASSWORDS: previous,
  });
  t.after(() => gateway.stop());
  return async (externalId: string, signer: string) => {
    const body = JSON.stringify({
      external_id: externalId,
      operation: "payment",
      details: { payment_id: externalId, status: "success" },
    });
    const { status } = await fetch(`${gateway.publicUrl}/callbacks/default/payments`, {
      method: "POST",
      headers: { "x-service-signature": sign(Buffer.from(body), signer) },
      body,
    });
    return status;
  };
}
