import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createWatchTokens } from "../../src/auth/watch-token.ts";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import type { Logger } from "../../src/report.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { keysText, newKey, scratch } from "../auth/issuer.ts";
import { closing } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { dataOf, graphql, paymentTold, postCallback } from "./callers.ts";

const files = scratch();
const key = newKey();
const keysOf = (entry: object = {}) =>
  keysText([{ name: "shop", key, scopes: ["payments:read"], ...entry }]);

async function start(t: TestContext, env: Record<string, string>, log?: Logger) {
  return closing(t, await startTestGateway(env, {}, log));
}

const keys = (text: string) => ({
  AUTH_MODE: "keys",
  API_KEYS_FILE: files.write("keys", text),
});

test("outside production the GraphiQL page needs no credentials, but its queries do", async (t) => {
  const { publicUrl } = await start(t, keys(keysOf()));
  const get = (url: string, accept: string) => fetch(url, { headers: { accept } });
  const page = await get(`${publicUrl}/graphql`, "text/html");
  assert.equal(page.status, 200);
  assert.match(await page.text(), /graphiql/i);
  const asked = await get(`${publicUrl}/graphql?query={__typename}`, "application/json");
  assert.equal(asked.status, 401);
  assert.match(await asked.text(), /CREDENTIALS_MISSING/);

  const production = await start(t, { ...keys(keysOf()), NODE_ENV: "production" });
  const hidden = await get(`${production.publicUrl}/graphql`, "text/html");
  assert.equal(hidden.status, 401);
  assert.doesNotMatch(await hidden.text(), /graphiql/i);
});

test("a changed keys file that names an unknown account is logged and not used", async (t) => {
  const problem = Promise.withResolvers<string>();
  const log = createLogger("error", { write: problem.resolve });
  const gateway = await start(t, keys(keysOf()), log);
  keys(keysOf({ key: newKey(), merchants: ["nobody"] }));
  const { reason } = JSON.parse(await problem.promise);
  assert.match(reason, /^API_KEYS_FILE: .*unknown account "nobody"/);
  const headers = { authorization: `Bearer ${key}` };
  assert.equal((await dataOf(gateway, "{ __typename }", { headers })).__typename, "Query");
});

test("in a rotation the secrets of the step before are accepted, and no others", async (t) => {
  const [old, next] = ["old-secret".repeat(4), "new-secret".repeat(4)];
  const gateway = await start(t, {
    ...{ WATCH_TOKEN_SECRET: next, WATCH_TOKEN_PREVIOUS_SECRETS: old },
    ...{ UPSTREAM_PASSWORD: "new", UPSTREAM_PREVIOUS_PASSWORDS: "old" },
  });
  const about = { account: "default", kind: EventKind.PAYMENT, externalId: "e" } as const;
  const codeOf = async (secret: string) => {
    const tokens = createWatchTokens(new Secret(secret));
    const token = await tokens.issue({ ...about, expiresAtMs: Date.now() + 60_000 });
    const headers = { authorization: `Bearer ${token}` };
    const { errors } = await graphql(gateway, '{ payment(externalId: "e") { id } }', { headers });
    return errors?.[0].extensions.code;
  };
  // A valid watch token is FORBIDDEN to look up a payment; an invalid one is UNAUTHENTICATED.
  const codes = [await codeOf(next), await codeOf(old), await codeOf("another".repeat(6))];
  assert.deepEqual(codes, ["FORBIDDEN", "FORBIDDEN", "UNAUTHENTICATED"]);

  const statusOf = async (password: string) =>
    (await postCallback(gateway, paymentTold(password), { password })).status;
  const statuses = await Promise.all(["new", "old", "another"].map(statusOf));
  assert.deepEqual(statuses, [200, 200, 401]);
});
