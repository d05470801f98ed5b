import assert from "node:assert/strict";
import { test } from "node:test";
import { createHostGuard } from "../../src/app/host-guard.ts";
import { readConfig } from "../../src/config/config.ts";

const loopback = { host: "127.0.0.1", port: 4000 };
const guardOf = (env: Record<string, string> = {}, listener = loopback) =>
  createHostGuard(readConfig(env), listener);
const guard = guardOf({
  PUBLIC_URL: "https://Gateway.shop.example/pay",
  CORS_ORIGINS: "https://shop.example",
});

const hosts: [host: string, ours: boolean][] = [
  ["127.0.0.1:4000", true],
  ["127.0.0.1", true],
  ["127.8.9.1:4000", true],
  ["[::1]:4000", true],
  ["localhost:4000", true],
  ["LOCALHOST", true],
  ["localhost.:4000", true],
  ["gateway.localhost", true],
  ["gateway.shop.example", true],
  ["gateway.shop.example:4000", true],
  ["evil.example", false],
  ["evil.example:4000", false],
  ["127.0.0.1.evil.example", false],
  ["localhost.evil.example", false],
  ["evil-localhost", false],
  ["evil.gateway.shop.example", false],
  ["gateway.shop.example.evil.example", false],
  ["shop.example", false],
  ["0.0.0.0:4000", false],
  ["192.168.0.1:4000", false],
  ["[::]:4000", false],
  ["[::ffff:192.168.0.1]", false],
  ["evil.example@localhost", false],
  ["localhost:4000@evil.example", false],
  ["localhost/evil.example", false],
  ["localhost:evil", false],
  ["localhost evil.example", false],
  ["", false],
];
for (const [host, ours] of hosts) {
  test(`Host ${JSON.stringify(host)} is ${ours ? "ours" : "misdirected"}`, () => {
    const status = ours ? undefined : 421;
    assert.equal(guard?.({ host })?.status, status);
    assert.equal(guard?.({ ":authority": host })?.status, status);
    assert.equal(guard?.({ host: "localhost", ":authority": host })?.status, status);
  });
}

const origins: [origin: string, allowed: boolean][] = [
  ["http://localhost:4000", true],
  ["http://127.0.0.1:3000", true],
  ["http://[::1]:4000", true],
  ["https://gateway.shop.example", true],
  ["https://shop.example", true],
  ["http://evil.example", false],
  ["http://evil.example:4000", false],
  ["https://shop.example.evil.example", false],
  ["http://localhost.evil.example", false],
  ["null", false],
  ["", false],
];
for (const [origin, allowed] of origins) {
  test(`Origin ${JSON.stringify(origin)} ${allowed ? "may" : "may not"} send`, () => {
    assert.equal(guard?.({ host: "localhost", origin })?.status, allowed ? undefined : 403);
  });
}

test("a request without Origin is allowed, also without Host", () => {
  assert.equal(guard?.({ host: "localhost:4000" }), undefined);
  assert.equal(guard?.({}), undefined, "no browser leaves Host out");
});

test("a listener that needs credentials or is not on loopback has no guard", () => {
  assert.ok(guardOf());
  assert.ok(guardOf({}, { host: "::1", port: 0 }));
  assert.ok(guardOf({ ALLOW_UNAUTHENTICATED: "true" }));
  assert.equal(guardOf({ AUTH_MODE: "keys", API_KEYS_FILE: "keys.json" }), undefined);
  const everywhere = { ALLOW_UNAUTHENTICATED: "true", PUBLIC_ADDR: "0.0.0.0:4000" };
  assert.equal(guardOf(everywhere, { host: "0.0.0.0", port: 4000 }), undefined);
  assert.ok(guardOf(everywhere), "the others of the same process are guarded still");
});
