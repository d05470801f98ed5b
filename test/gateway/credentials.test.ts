import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Logger } from "pino";
import type { Gateway } from "../../src/app/gateway.ts";
import { ConfigError } from "../../src/config/config-error.ts";
import { createLogger } from "../../src/telemetry/log.ts";
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
