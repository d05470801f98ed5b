import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Gateway } from "../../src/gateway.ts";
import { sign } from "../../src/upstream/signature.ts";
import { startTestGateway } from "../start.ts";

let gateway: Gateway;
before(async () => {
  gateway = await startTestGateway();
});
after(() => gateway.stop());

interface Listed {
  dead_letters: { account: string; id: string; resource: string; reason: string }[];
}

test("an operator sees what was not understood, reads it whole and replays it", async () => {
  const body = '{"transaction_id": "no external id"}';
  const { status } = await fetch(`${gateway.publicUrl}/callbacks/default/payouts`, {
    method: "POST",
    headers: { "x-service-signature": sign(Buffer.from(body), "sandbox-password") },
    body,
  });
  assert.equal(status, 200);

  const listed = await (await fetch(`${gateway.adminUrl}/dead-letters`)).text();
  const [letter] = (JSON.parse(listed) as Listed).dead_letters;
  assert.equal(letter?.account, "default");
  assert.equal(letter?.resource, "payouts");
  assert.ok(!listed.includes("body"), "the list holds no bodies");

  const url = `${gateway.adminUrl}/dead-letters/default/${encodeURIComponent(letter?.id ?? "")}`;
  const whole = (await (await fetch(url)).json()) as { body: string };
  assert.equal(Buffer.from(whole.body, "base64").toString(), body);

  const replay = (headers: Record<string, string>) =>
    fetch(`${url}/replay`, { method: "POST", headers }).then(async (response) => [
      response.status,
      await response.json(),
    ]);
  assert.equal((await replay({ "content-type": "text/plain" }))[0], 415);
  assert.deepEqual(await replay({ "content-type": "application/json" }), [
    422,
    { outcome: "not_understood" },
  ]);
});

test("a dead letter that is not there is 404, and so is any other path below", async () => {
  for (const path of ["/dead-letters/default/none", "/dead-letters/default", "/dead-letters-x"]) {
    assert.equal((await fetch(gateway.adminUrl + path)).status, 404, path);
  }
});
