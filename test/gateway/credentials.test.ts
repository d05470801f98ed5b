import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Logger } from "pino";
import type { Gateway } from "../../src/app/gateway.ts";
import { ConfigError } from "../../src/config/config-error.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { sign } from "../../src/wire/signature.ts";
import { keysText, newKey, scratch } from "../auth/issuer.ts";
import { startTestGateway } from "../start.ts";

const files = scratch();
const key = newKey();

async function start(t: TestContext, env: Record<string, string>, log?: Logger) {
  const gateway = await startTestGateway(env, {}, log);
  t.after(() => gateway.stop());
  return gateway;
}

const keysEnv = () => ({
  AUTH_MODE: "keys",
  API_KEYS_FILE: files.write("keys", keysText([{ name: "shop", key, scopes: ["payments:read"] }])),
});

test("an invalid keys file at start is a ConfigError that names the variable and the fault", async () => {
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
  const wrongAccount = keysText([{ name: "shop", key, scopes: [], merchants: ["nobody"] }]);
  await refused(
    "account",
    keys(wrongAccount),
    /^API_KEYS_FILE: .*shop.*unknown account "nobody".*default$/,
  );
  const jwt = { AUTH_MODE: "jwt", AUTH_ISSUER: "i", AUTH_AUDIENCE: "a" };
  const jwks = { ...jwt, AUTH_JWKS_FILE: files.write("bad-jwks", "[]") };
  await refused("jwks", jwks, /^AUTH_JWKS_FILE: is not a JSON Web Key Set/);
});

test("outside production the GraphiQL page needs no credentials, but its queries do", async (t) => {
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

test("a field whose scope the caller lacks is null with FORBIDDEN, and the others are answered", async (t) => {
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

test("during a rotation of the merchant's password, callbacks signed with any of them are accepted", async (t) => {
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

  // The new password may be listed in UPSTREAM_PREVIOUS_PASSWORDS before it is in use.
  const early = await start(t, {
    UPSTREAM_PASSWORD: "old-password",
    UPSTREAM_PREVIOUS_PASSWORDS: "new-password",
  });
  assert.equal(await send(early.publicUrl, "a", "new-password"), 200);

  const done = await start(t, { UPSTREAM_PASSWORD: "new-password" });
  assert.equal(await send(done.publicUrl, "a", "new-password"), 200);
  assert.equal(await send(done.publicUrl, "b", "old-password"), 401);
});

test("a changed keys file that names an unknown account is logged and not used", async (t) => {
  const path = files.write("named", keysText([{ name: "shop", key, scopes: ["payments:read"] }]));
  const problem = Promise.withResolvers<string>();
  const log = createLogger("error", { write: problem.resolve });
  const { publicUrl } = await start(t, { AUTH_MODE: "keys", API_KEYS_FILE: path }, log);
  const wrong = { name: "shop", key: newKey(), scopes: [], merchants: ["nobody"] };
  files.write("named", keysText([wrong]));
  const { variable, reason } = JSON.parse(await problem.promise);
  assert.equal(variable, "API_KEYS_FILE");
  assert.match(reason, /unknown account "nobody"/);
  const response = await fetch(`${publicUrl}/graphql?query={__typename}`, {
    headers: { authorization: `Bearer ${key}`, accept: "application/json" },
  });
  assert.deepEqual(await response.json(), { data: { __typename: "Query" } });
});

test("each step of a rotation of the watch secret accepts the tokens of the step before", async (t) => {
  const [old, next] = ["old", "new"].map((name) => name.padEnd(32, "-watch-secret")) as [
    string,
    string,
  ];
  const gatewayWith = (secret: string, previous: string) =>
    start(t, { WATCH_TOKEN_SECRET: secret, WATCH_TOKEN_PREVIOUS_SECRETS: previous });
  const [before, announced, during, after] = await Promise.all([
    gatewayWith(old, ""),
    gatewayWith(old, next),
    gatewayWith(next, old),
    gatewayWith(next, ""),
  ]);
  const ask = async ({ publicUrl }: Gateway, query: string, token?: string) => {
    const response = await fetch(`${publicUrl}/graphql`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(token && { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify({ query }),
    });
    return response.text();
  };
  const tokenOf = async (gateway: Gateway) => {
    const create = `mutation { createWatchToken(input: {externalId: "e", kind: PAYMENT}) {
      ... on WatchToken { token } } }`;
    const { data } = JSON.parse(await ask(gateway, create));
    return data.createWatchToken.token as string;
  };
  /** A valid watch token is FORBIDDEN to look up a payment; an invalid one is UNAUTHENTICATED. */
  const takes = async (gateway: Gateway, token: string) => {
    const answered = await ask(gateway, `{ payment(externalId: "e") { id } }`, token);
    assert.match(answered, /"FORBIDDEN"|"UNAUTHENTICATED"/);
    return answered.includes("FORBIDDEN");
  };
  for (const [one, other] of [
    [before, announced],
    [announced, during],
  ] as const) {
    assert.equal(await takes(other, await tokenOf(one)), true);
    assert.equal(await takes(one, await tokenOf(other)), true);
  }
  assert.equal(await takes(after, await tokenOf(during)), true);
  assert.equal(await takes(after, await tokenOf(before)), false);
});
