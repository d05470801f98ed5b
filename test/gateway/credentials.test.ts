import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { ConfigError } from "../../src/config.ts";
import { sign } from "../../src/upstream/signature.ts";
import { keysText, newKey, scratch } from "../auth/issuer.ts";
import { startTestGateway } from "../start.ts";

const files = scratch();
const key = newKey();

async function start(t: TestContext, env: Record<string, string>) {
  const gateway = await startTestGateway(env);
  t.after(() => gateway.stop());
  return gateway;
}

const keysEnv = () => ({
  AUTH_MODE: "keys",
  API_KEYS_FILE: files.write("keys", keysText([{ name: "shop", key, scopes: ["payments:read"] }])),
});

test("a file of keys that is wrong at start is a wrong configuration, named with what is wrong", async () => {
  const refused = (name: string, env: Record<string, string>, message: RegExp) =>
    assert.rejects(startTestGateway(env), (error) => {
      assert.ok(error instanceof ConfigError, name);
      assert.match(error.message, message);
      return true;
    });
  const keys = (text: string) => ({ AUTH_MODE: "keys", API_KEYS_FILE: files.write("bad", text) });
  const wrongScope = keysText([{ name: "shop", key, scopes: ["payments:all"] }]);
  await refused(
    "scope",
    keys(wrongScope),
    /^API_KEYS_FILE: .*shop.*"payments:all".*payments:write/,
  );
  await refused("json", keys("{"), /^API_KEYS_FILE: is not JSON/);
  await refused(
    "none",
    { AUTH_MODE: "keys", API_KEYS_FILE: "/nowhere/keys" },
    /^API_KEYS_FILE: .*ENOENT/,
  );
  const jwt = { AUTH_MODE: "jwt", AUTH_ISSUER: "i", AUTH_AUDIENCE: "a" };
  const jwks = { ...jwt, AUTH_JWKS_FILE: files.write("bad-jwks", "[]") };
  await refused("jwks", jwks, /^AUTH_JWKS_FILE: is not a JSON Web Key Set/);
});

test("the GraphiQL page loads for anybody outside production; what it asks needs credentials", async (t) => {
  const { publicUrl } = await start(t, keysEnv());
  const get = (url: string, accept: string) => fetch(url, { headers: { accept } });
  const page = await get(`${publicUrl}/graphql`, "text/html");
  assert.equal(page.status, 200);
  assert.match(await page.text(), /graphiql/i);
  const asked = await get(`${publicUrl}/graphql?query={__typename}`, "application/json");
  assert.equal(asked.status, 401);
  assert.match(await asked.text(), /CREDENTIALS_MISSING/);

  const production = await start(t, { ...keysEnv(), NODE_ENV: "production" });
  const hidden = await get(`${production.publicUrl}/graphql`, "text/html");
  assert.equal(hidden.status, 406);
  assert.doesNotMatch(await hidden.text(), /graphiql/i);
});

test("a link that needs a scope is null with FORBIDDEN, and the rest of the answer stands", async (t) => {
  const { publicUrl } = await start(t, keysEnv());
  const body = Buffer.from(
    '{"external_id":"order","operation":"payment","is_success":true,"details":{"payment_id":"p","operation_id":"o","status":"success"}}',
  );
  const stored = await fetch(`${publicUrl}/callbacks/default/payments`, {
    method: "POST",
    headers: { "x-service-signature": sign(body, "sandbox-password") },
    body,
  });
  assert.equal(stored.status, 200);
  await stored.arrayBuffer();
  const query =
    '{ payment(externalId: "order") { isSuccess operationInfo { __typename } events { source } } }';
  const response = await fetch(`${publicUrl}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({ query }),
  });
  const { data, errors } = (await response.json()) as {
    data: object;
    errors: { path: string[]; extensions: { code: string } }[];
  };
  assert.deepEqual(data, {
    payment: { isSuccess: true, operationInfo: null, events: [{ source: "CALLBACK" }] },
  });
  assert.deepEqual(
    errors.map(({ path, extensions }) => [path.join("."), extensions.code]),
    [["payment.operationInfo", "FORBIDDEN"]],
  );
});

test("while the merchant's password is rotated, callbacks signed with either are taken", async (t) => {
  const send = async (publicUrl: string, id: string, password: string) => {
    const body = Buffer.from(
      `{"external_id":"${id}","operation":"payment","details":{"payment_id":"${id}","status":"success"}}`,
    );
    const response = await fetch(`${publicUrl}/callbacks/default/payments`, {
      method: "POST",
      headers: { "x-service-signature": sign(body, password) },
      body,
    });
    await response.arrayBuffer();
    return response.status;
  };
  const during = await start(t, {
    UPSTREAM_PASSWORD: "new-password",
    UPSTREAM_PREVIOUS_PASSWORDS: "older-password,old-password",
  });
  assert.equal(await send(during.publicUrl, "a", "new-password"), 200);
  assert.equal(await send(during.publicUrl, "b", "old-password"), 200);
  assert.equal(await send(during.publicUrl, "c", "older-password"), 200);
  assert.equal(await send(during.publicUrl, "d", "another-password"), 401);

  // Before the change it is the other way round: the new one may be announced first.
  const early = await start(t, {
    UPSTREAM_PASSWORD: "old-password",
    UPSTREAM_PREVIOUS_PASSWORDS: "new-password",
  });
  assert.equal(await send(early.publicUrl, "a", "new-password"), 200);

  const done = await start(t, { UPSTREAM_PASSWORD: "new-password" });
  assert.equal(await send(done.publicUrl, "a", "new-password"), 200);
  assert.equal(await send(done.publicUrl, "b", "old-password"), 401);
});
