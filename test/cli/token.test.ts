import assert from "node:assert/strict";
import { test } from "node:test";
import { ofSuite } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { timeoutMs } from "../until.ts";
import { run } from "./resident.ts";
import { placesOf } from "./run.ts";

const secret = "a secret of at least thirty-two bytes";
const gateway = ofSuite(() => startTestGateway({ WATCH_TOKEN_SECRET: secret }));

/** The first bytes that a browser gets for a watch with this token. */
async function watch(token: string, externalId: string): Promise<string> {
  const url = new URL(`${gateway.publicUrl}/graphql`);
  url.searchParams.set("watch_token", token);
  url.searchParams.set(
    "query",
    `subscription { paymentUpdated(externalId: "${externalId}") { cursor } }`,
  );
  const response = await fetch(url, {
    headers: { accept: "text/event-stream" },
    signal: AbortSignal.timeout(timeoutMs),
  });
  const reader = response.body!.getReader();
  const { value } = await reader.read();
  await reader.cancel();
  return new TextDecoder().decode(value);
}

test("a running gateway issues a token for watching this payment and no other", async () => {
  const { code, out } = await run(["token", "--external-id", "order-1", "--ttl", "2m", "--json"], {
    env: placesOf(gateway),
  });
  assert.equal(code, 0);
  const { token, expires_at } = JSON.parse(out) as { token: string; expires_at: string };
  const leftMs = Date.parse(expires_at) - Date.now();
  assert.ok(leftMs > 60_000 && leftMs <= 120_000, expires_at);
  assert.doesNotMatch(await watch(token, "order-1"), /FORBIDDEN|UNAUTHENTICATED/);
  assert.match(await watch(token, "order-2"), /FORBIDDEN/);
});

test("--offline issues a token with the gateway's secret, without a gateway", async () => {
  const args = ["token", "--external-id", "order-1", "--offline"];
  const made = await run(args, { env: { WATCH_TOKEN_SECRET: secret } });
  assert.equal(made.code, 0);
  assert.doesNotMatch(await watch(made.out.trim(), "order-1"), /FORBIDDEN|UNAUTHENTICATED/);

  const other = await run(args, { env: { WATCH_TOKEN_SECRET: `${secret}.` } });
  assert.match(await watch(other.out.trim(), "order-1"), /UNAUTHENTICATED/);
  for (const env of [{}, { WATCH_TOKEN_SECRET: "short" }]) {
    const { code, err, out } = await run(args, { env });
    assert.equal(code, 78);
    assert.match(err, /^WATCH_TOKEN_SECRET: .*at least 32 bytes/);
    assert.equal(out, "");
  }
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
