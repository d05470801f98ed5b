import assert from "node:assert/strict";
import { test } from "node:test";
import { base64url, createLocalJWKSet, exportSPKI, SignJWT, UnsecuredJWT } from "jose";
import { GatewayError } from "../../src/errors.ts";
import { keyOf } from "../../src/ratelimit/turns.ts";
import { audience, issuer, readerOf, signingKey, signToken } from "./issuer.ts";

const [es, rsa, ed, stranger] = await Promise.all([
  signingKey("es"),
  signingKey("rsa", "RS256"),
  signingKey("ed", "EdDSA"),
  signingKey("es"),
]);
const read = readerOf({
  keyOf: createLocalJWKSet({ keys: [es.jwk, rsa.jwk, ed.jwk] }),
  version: () => 1,
});
const now = () => Math.floor(Date.now() / 1_000);
const claims = {
  iss: issuer,
  aud: audience,
  sub: "backend",
  exp: now() + 600,
  scope: "payments:write",
};

for (const key of [es, rsa, ed]) {
  test(`a good ${key.alg} token is read`, async () => {
    const exp = now() + 60;
    const token = await signToken(key, { scope: "openid payments:read wallet:pan", exp });
    const { name, scopes, customer, merchants, expiresAtMs } = await read(token);
    assert.equal(name, "jwt:backend");
    assert.deepEqual([...scopes], ["payments:read", "wallet:pan"]);
    assert.deepEqual([customer, merchants, expiresAtMs], [undefined, undefined, exp * 1_000]);
  });
}

/** A token signed with HS256 whose secret is the public key, which everybody knows. */
async function confused(secret: Uint8Array, kid: string): Promise<string> {
  return new SignJWT(claims).setProtectedHeader({ alg: "HS256", kid }).sign(secret);
}

async function tampered(): Promise<string> {
  const [header, , signature] = (await signToken(es, { scope: "payments:read" })).split(".");
  return [header, base64url.encode(JSON.stringify(claims)), signature].join(".");
}

const text = new TextEncoder();
const attacks: Record<string, () => Promise<string> | string> = {
  "alg none": () => new UnsecuredJWT(claims).encode(),
  "HS256 with the public key's PEM as the secret": async () =>
    confused(text.encode(await exportSPKI(rsa.publicKey)), "rsa"),
  "the kid of no key": () => signToken(es, {}, { kid: "nobody" }),
  "the kid of another key": () => signToken(es, {}, { kid: "rsa" }),
  "somebody else's key under a known kid": () => signToken(stranger),
  "a key of its own in the header": () =>
    new SignJWT(claims)
      .setProtectedHeader({ alg: "ES256", jwk: stranger.jwk as never })
      .sign(stranger.privateKey),
  "another audience": () => signToken(es, { aud: "shop" }),
  "no audience": () => signToken(es, { aud: undefined }),
  "another issuer": () => signToken(es, { iss: "https://login.shop.example.evil/" }),
  "no issuer": () => signToken(es, { iss: undefined }),
  "no expiry": () => signToken(es, { exp: undefined }),
  "an expiry that is a text": () => signToken(es, { exp: "tomorrow" }),
  "an expiry an hour ago": () => signToken(es, { exp: now() - 3_600 }),
  "an expiry one second ago": () => signToken(es, { exp: now() - 1 }),
  "a start in a minute": () => signToken(es, { nbf: now() + 60 }),
  "a changed payload": tampered,
  "no signature": async () => `${(await signToken(es)).split(".").slice(0, 2).join(".")}.`,
  "no JSON": () => "a.b.c",
  "a critical extension that is not known": () =>
    new SignJWT(claims)
      .setProtectedHeader({ alg: "ES256", kid: "es", crit: ["x"], x: 1 } as never)
      .sign(es.privateKey, { crit: { x: true } }),
  "a scope that is a number": () => signToken(es, { scope: 1 }),
  "an empty customer": () => signToken(es, { customer_external_id: "" }),
  "a customer that is null": () => signToken(es, { customer_external_id: null }),
  "several customers": () => signToken(es, { customer_external_id: ["a", "b"] }),
  "merchants that are a text": () => signToken(es, { merchants: "shop" }),
};
for (const [attack, make] of Object.entries(attacks)) {
  test(`a token with ${attack} is refused`, async () => {
    const token = await make();
    await assert.rejects(read(token), (error) => {
      assert.ok(error instanceof GatewayError, String(error));
      assert.equal(error.code, "UNAUTHENTICATED", error.message);
      assert.ok(!error.message.includes(token.slice(-20)));
      return true;
    });
  });
}

test("a symmetric algorithm is refused even if the key set returns its secret", async () => {
  const secret = text.encode("s".repeat(32));
  const careless = readerOf({ keyOf: async () => secret as never, version: () => 1 });
  await assert.rejects(careless(await confused(secret, "h")), /the token is not valid/);
});

test("an issuer's clock may be a little ahead", async () => {
  assert.equal((await read(await signToken(es, { nbf: now() + 3 }))).name, "jwt:backend");
});

test("a customer-bound token has only customer scopes, whatever its scope claim", async () => {
  const scopesOf = async (scope: unknown) => {
    const { customer, scopes } = await read(
      await signToken(es, { customer_external_id: "customer-1", scope }),
    );
    assert.equal(customer, "customer-1");
    return [...scopes].sort();
  };
  const all = ["subscriptions:write", "wallet:read", "wallet:write"];
  assert.deepEqual(await scopesOf(undefined), all);
  assert.deepEqual(await scopesOf("openid profile"), all);
  assert.deepEqual(await scopesOf("payments:write events:read wallet:pan watch:create"), all);
  assert.deepEqual(await scopesOf("payments:write wallet:pan wallet:read"), ["wallet:read"]);
});

test("a caller's name is short, and tokens without a usable sub are callers of their own", async () => {
  const nameOf = async (sub: unknown) => (await read(await signToken(es, { sub }))).name;
  assert.equal(await nameOf(7), "jwt:7");
  const long = "u".repeat(8_000);
  const names = [await nameOf(long), await nameOf(`${long}x`)];
  for (const sub of [{ id: 1 }, { id: 2 }, "", undefined]) names.push(await nameOf(sub));
  for (const name of names) assert.match(name, /^jwt:[\w-]{16}$/);
  assert.equal(new Set(names).size, names.length);
  assert.equal(await nameOf(long), names[0]);
});

test("tokens of one service take turns as one caller, whatever their sub", async () => {
  const turnsOf = async (claims: Record<string, unknown>) => {
    const credential = await read(await signToken(es, claims));
    return [credential.name, keyOf(credential)] as const;
  };
  const [anna, asShop] = await turnsOf({ sub: "anna", client_id: "shop" });
  const [boris, alsoAsShop] = await turnsOf({ sub: "boris", client_id: "shop" });
  assert.deepEqual([anna, boris], ["jwt:anna", "jwt:boris"], "logs distinguish them");
  assert.equal(asShop, alsoAsShop);
  const others = [
    await turnsOf({ sub: "anna", client_id: "market" }),
    await turnsOf({ sub: "anna" }),
    await turnsOf({ sub: "boris" }),
    await turnsOf({ sub: "shop" }),
  ].map(([, key]) => key);
  assert.equal(new Set([asShop, ...others]).size, 5, "all others are different callers");
  const customer = { customer_external_id: "customer-1", client_id: "shop" };
  assert.match((await turnsOf(customer))[1], /^c:/);
  for (const client_id of ["", 7, null, ["shop"]]) {
    await assert.rejects(turnsOf({ client_id }), /client_id is not the name of a service/);
  }
});

test("a customer's name in logs distinguishes customers but does not identify them", async () => {
  const nameOf = async (id: string | number) =>
    (await read(await signToken(es, { customer_external_id: id }))).name;
  assert.equal(await nameOf("anna@shop.example"), await nameOf("anna@shop.example"));
  assert.notEqual(await nameOf("anna@shop.example"), await nameOf("boris@shop.example"));
  assert.doesNotMatch(await nameOf("anna@shop.example"), /anna/);
  assert.equal(await nameOf(17), await nameOf("17"));
});

test("a token may name its merchant accounts", async () => {
  const { merchants } = await read(await signToken(es, { merchants: ["shop", "market"] }));
  assert.deepEqual([...(merchants ?? [])], ["shop", "market"]);
});

test("a good token's signature is checked once, until the keys change", async () => {
  let [version, checks]: [unknown, number] = [1, 0];
  let known = [es.jwk];
  const remembering = readerOf({
    version: () => version,
    keyOf: (header, token) => {
      checks++;
      return createLocalJWKSet({ keys: known })(header, token);
    },
  });
  const token = await signToken(es);
  for (let nth = 0; nth < 3; nth++) assert.equal((await remembering(token)).name, "jwt:backend");
  assert.equal(checks, 1);

  // The new set lacks the key, as when an issuer withdraws it.
  [version, known] = [2, [ed.jwk]];
  await assert.rejects(remembering(token), { code: "UNAUTHENTICATED" });
  [version, known] = [undefined, [es.jwk]];
  for (let nth = 0; nth < 2; nth++) await remembering(token);
  assert.equal(checks, 4, "while the keys are in doubt, nothing is remembered");
});

test("a token that is being checked while the keys change is checked again with the new ones", async () => {
  let version = 1;
  let known = [es.jwk];
  const [checking, changed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const remembering = readerOf({
    version: () => version,
    async keyOf(header, token) {
      const old = createLocalJWKSet({ keys: known });
      if (header?.kid === "es") {
        checking.resolve();
        await changed.promise;
      }
      return old(header, token);
    },
  });
  const token = await signToken(es);
  const early = remembering(token);
  await checking.promise;
  [version, known] = [2, [ed.jwk]];
  await remembering(await signToken(ed));
  changed.resolve();
  assert.equal((await early).name, "jwt:backend", "checked with the keys of its arrival");
  await assert.rejects(remembering(token), { code: "UNAUTHENTICATED" });
});

test("a remembered token is refused from its expiry on, and a tampered one always", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
  const token = await signToken(es, { exp: now() + 60 });
  await read(token);
  await assert.rejects(read(`${token.slice(0, -6)}AAAAAA`), { code: "UNAUTHENTICATED" });
  t.mock.timers.tick(61_000);
  await assert.rejects(read(token), {
    code: "UNAUTHENTICATED",
    details: { reason: "TOKEN_EXPIRED" },
  });
});
