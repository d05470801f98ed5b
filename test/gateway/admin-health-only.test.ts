import assert from "node:assert/strict";
import { test } from "node:test";
import { startTestGateway } from "../start.ts";

const paths = ["/", "/api/session", "/dead-letters", "/graphql"];

async function statuses(base: string, asked: readonly string[]): Promise<number[]> {
  const answers = await Promise.all(asked.map((path) => fetch(`${base}${path}`)));
  await Promise.all(answers.map((answer) => answer.arrayBuffer()));
  return answers.map(({ status }) => status);
}

test("with AUTH_MODE=none off loopback, the admin listener serves only health and metrics", async () => {
  const gateway = await startTestGateway({ AUTH_MODE: "none", ADMIN_ADDR: "0.0.0.0:0" });
  try {
    const { port } = new URL(gateway.adminUrl);
    const base = `http://127.0.0.1:${port}`;
    assert.deepEqual(await statuses(base, paths), [403, 403, 403, 403]);
    assert.deepEqual(await statuses(base, ["/healthz", "/readyz", "/metrics"]), [200, 200, 200]);
    const discard = await fetch(`${base}/dead-letters/default/x`, { method: "DELETE" });
    assert.equal(discard.status, 403);
    assert.match(await discard.text(), /AUTH_MODE=none/);
  } finally {
    await gateway.stop();
  }
});

test("control: on loopback the same listener serves its operators too", async () => {
  const gateway = await startTestGateway({ AUTH_MODE: "none" });
  try {
    const [, session, letters] = await statuses(gateway.adminUrl, paths);
    assert.deepEqual([session, letters], [200, 200]);
  } finally {
    await gateway.stop();
  }
});

test("with ADMIN_KEY the same listener lets in who has the key, and nobody else", async (t) => {
  const ADMIN_KEY = "k".repeat(40);
  const gateway = await startTestGateway({ AUTH_MODE: "none", ADMIN_ADDR: "0.0.0.0:0", ADMIN_KEY });
  t.after(() => gateway.stop());
  const base = `http://127.0.0.1:${new URL(gateway.adminUrl).port}`;
  const ask = async (path: string, key?: string) => {
    const headers = key ? { authorization: `Bearer ${key}` } : undefined;
    const response = await fetch(`${base}${path}`, { ...(headers && { headers }) });
    return { status: response.status, body: await response.text() };
  };
  for (const path of ["/api/session", "/dead-letters"]) {
    assert.equal((await ask(path)).status, 401);
    assert.equal((await ask(path, "x".repeat(40))).status, 401);
    assert.equal((await ask(path, ADMIN_KEY)).status, 200);
  }
  assert.equal(JSON.parse((await ask("/api/session", ADMIN_KEY)).body).authenticated, true);
  // Callers of the other listeners still need nothing.
  const call = await fetch(`${gateway.publicUrl}/graphql?query=%7B__typename%7D`);
  assert.equal(call.status, 200);
});
