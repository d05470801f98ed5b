import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { ask } from "../ask.ts";
import { closing } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";

const offLoopback = { AUTH_MODE: "none", ADMIN_ADDR: "0.0.0.0:0" };

/** A gateway, and what its admin listener answers. */
async function start(t: TestContext, env: Record<string, string>) {
  const gateway = closing(t, await startTestGateway(env));
  const base = `http://127.0.0.1:${new URL(gateway.adminUrl).port}`;
  return {
    gateway,
    admin: (path: string, key?: string, method = "GET") =>
      ask(base + path, { method, headers: key ? { authorization: `Bearer ${key}` } : {} }),
  };
}

test("with AUTH_MODE=none off loopback, the admin listener serves only health and metrics", async (t) => {
  const { admin } = await start(t, offLoopback);
  for (const path of ["/", "/api/session", "/dead-letters", "/graphql"]) {
    assert.equal((await admin(path)).status, 403, path);
  }
  for (const path of ["/healthz", "/readyz", "/metrics"]) {
    assert.equal((await admin(path)).status, 200, path);
  }
  const discard = await admin("/dead-letters/default/x", undefined, "DELETE");
  assert.equal(discard.status, 403);
  assert.match(discard.text, /AUTH_MODE=none/);
});

test("control: on loopback the same listener serves its operators too", async (t) => {
  const { admin } = await start(t, { AUTH_MODE: "none" });
  for (const path of ["/api/session", "/dead-letters"]) {
    assert.equal((await admin(path)).status, 200, path);
  }
});

test("with ADMIN_KEY the same listener lets in who has the key, and nobody else", async (t) => {
  const ADMIN_KEY = "k".repeat(40);
  const { admin, gateway } = await start(t, { ...offLoopback, ADMIN_KEY });
  for (const path of ["/api/session", "/dead-letters"]) {
    assert.equal((await admin(path)).status, 401);
    assert.equal((await admin(path, "x".repeat(40))).status, 401);
    assert.equal((await admin(path, ADMIN_KEY)).status, 200);
  }
  const session = await admin("/api/session", ADMIN_KEY);
  assert.equal(JSON.parse(session.text).authenticated, true);
  // Callers of the other listeners still need nothing.
  const call = await fetch(`${gateway.publicUrl}/graphql?query=%7B__typename%7D`);
  assert.equal(call.status, 200);
});
