import assert from "node:assert/strict";
import { test } from "node:test";
import { ofSuite } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { inTime } from "../until.ts";
import { run } from "./resident.ts";
import { placesOf } from "./run.ts";

const gateway = ofSuite(startTestGateway);

/** The status of a browser's watch by this token. */
async function watch(token: string, externalId: string): Promise<number> {
  const url = `${gateway.publicUrl}/watch/payments/${externalId}?watch_token=${token}`;
  const { status, body } = await fetch(url, inTime());
  await body?.cancel();
  return status;
}

test("a running gateway issues a token for watching this payment and no other", async () => {
  const { code, out } = await run(["token", "--external-id", "order-1", "--ttl", "2m", "--json"], {
    env: placesOf(gateway),
  });
  assert.equal(code, 0);
  const { token, expires_at } = JSON.parse(out) as { token: string; expires_at: string };
  const leftMs = Date.parse(expires_at) - Date.now();
  assert.ok(leftMs > 60_000 && leftMs <= 120_000, expires_at);
  assert.equal(await watch(token, "order-1"), 200);
  assert.equal(await watch(token, "order-2"), 403);
});

test("an unreachable gateway and another server end with 69", async () => {
  const token = (url: string) => run(["token", "--external-id", "order-1", "--url", url]);
  const nobody = await token("http://127.0.0.1:1");
  assert.equal(nobody.code, 69);
  assert.match(nobody.err, /cannot reach the gateway at http:\/\/127.0.0.1:1: .*Else give --url/);
  const other = await token(gateway.adminUrl);
  assert.equal(other.code, 69);
  assert.match(other.err, /answers, but not as a gateway's rpc listener does/);
});
