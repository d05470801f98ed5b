import assert from "node:assert/strict";
import { test } from "node:test";
import { createLocalJWKSet } from "jose";
import { createApiKeys } from "../../src/auth/api-keys.ts";
import { createIdentify, createVerify, type VerifyOptions } from "../../src/auth/identify.ts";
import { createWatchTokens } from "../../src/auth/watch-token.ts";
import { GatewayError } from "../../src/errors.ts";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { keyFile, keysText, readerOf, scratch, signingKey, signToken } from "./issuer.ts";

const files = scratch();
const key = await signingKey("es");
const watchTokens = createWatchTokens(new Secret("w".repeat(32)));
const apiKeys = createApiKeys(
  keyFile(
    files.write(
      "keys",
      keysText([
        { name: "all", key: "all-accounts", scopes: ["payments:read"] },
        { name: "dots", key: "key.with.dots", scopes: [] },
        { name: "shop", key: "shop-only", scopes: [], merchants: ["shop"] },
        { name: "two", key: "two-accounts", scopes: [], merchants: ["shop", "market", "gone"] },
        { name: "gone", key: "gone-account", scopes: [], merchants: ["gone"] },
      ]),
    ),
  ),
  new Set(["shop", "market", "gone"]),
);
apiKeys.close();
const readJwt = readerOf({
  keyOf: createLocalJWKSet({ keys: [key.jwk] }),
  version: () => 1,
});

const closed: Options = {
  accounts: new Set(["default", "shop", "market"]),
  watchTokens,
  open: false,
  findKey: apiKeys.find,
  readJwt,
};

interface Options extends VerifyOptions {
  readonly accounts: ReadonlySet<string>;
}

interface Shown {
  readonly bearer?: string;
  readonly authorization?: string;
  readonly account?: string;
  readonly customerToken?: string;
  readonly watchToken?: string;
}

function who(shown: Shown, options: Partial<Options> = {}) {
  const headers: Record<string, string | undefined> = {
    authorization: shown.bearer === undefined ? shown.authorization : `Bearer ${shown.bearer}`,
    "x-merchant-account": shown.account,
    "x-customer-auth": shown.customerToken,
  };
  const { accounts, ...rest } = { ...closed, ...options };
  return createIdentify(
    createVerify(rest),
    accounts,
  )({
    header: (name) => headers[name],
    watchToken: shown.watchToken,
  });
}

async function refusal(shown: Shown, options?: Partial<Options>): Promise<string> {
  try {
    await who(shown, options);
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    return `${error.code} ${error.details.reason}`;
  }
  return "nothing";
}

const grantFor = (account: string, expiresInMs = 60_000) => ({
  ...{ account, kind: EventKind.PAYMENT, externalId: "order" },
  expiresAtMs: Date.now() + expiresInMs,
});
const watchTokenFor = (...of: Parameters<typeof grantFor>) => watchTokens.issue(grantFor(...of));

test("keys and tokens share one header, and each mode accepts only its own kind", async () => {
  const jwt = await signToken(key);
  assert.equal((await who({ bearer: "all-accounts" })).name, "key:all");
  assert.equal((await who({ bearer: "key.with.dots" })).name, "key:dots");
  assert.equal((await who({ authorization: "bearer all-accounts" })).name, "key:all");
  const { name, expiresAtMs } = await who({ bearer: jwt });
  assert.deepEqual([name, (expiresAtMs ?? 0) > Date.now()], ["jwt:backend", true]);
  const invalid = "UNAUTHENTICATED CREDENTIALS_INVALID";
  assert.equal(await refusal({ bearer: jwt }, { readJwt: undefined }), invalid);
  assert.equal(await refusal({ bearer: "all-accounts" }, { findKey: undefined }), invalid);
});

test("missing and unusable credentials are refused", async () => {
  assert.equal(await refusal({}), "UNAUTHENTICATED CREDENTIALS_MISSING");
  assert.equal(await refusal({ authorization: "" }), "UNAUTHENTICATED CREDENTIALS_MISSING");
  for (const authorization of [
    "Bearer",
    "Bearer ",
    "Bearer wrong",
    "Basic c2hvcDpwYXNz",
    "all-accounts",
    "Bearer all-accounts, Bearer other",
    "Bearer a.b.c",
    `Bearer ${"x".repeat(20_000)}`,
  ]) {
    assert.match(await refusal({ authorization }), /^UNAUTHENTICATED /, authorization.slice(0, 40));
  }
  assert.match(
    await refusal({ watchToken: "all-accounts" }),
    /^UNAUTHENTICATED WATCH_TOKEN_INVALID/,
  );
  assert.match(
    await refusal({ watchToken: await signToken(key), bearer: "all-accounts" }),
    /^UNAUTHENTICATED WATCH_TOKEN_INVALID/,
    "nothing but a watch token may stand in the address",
  );
});

test("without authentication every caller has all scopes but wallet:pan", async () => {
  const { name, scopes, account } = await who({ bearer: "wrong" }, { open: true });
  assert.deepEqual(
    [name, account, scopes.size, scopes.has("wallet:pan")],
    ["anonymous", "default", 12, false],
  );
});

test("a watch token limits its caller to one payment, both in the header and in the URL", async () => {
  const token = await watchTokenFor("shop");
  for (const open of [true, false]) {
    for (const shown of [{ bearer: token }, { watchToken: token }]) {
      const caller = await who(shown, { open });
      assert.deepEqual([...caller.scopes], []);
      assert.deepEqual(caller.watch, { kind: EventKind.PAYMENT, externalId: "order" });
      assert.equal(caller.account, "shop");
      assert.ok((caller.expiresAtMs ?? 0) > Date.now(), "its streams end by then");
    }
  }
  const denied = "PERMISSION_DENIED MERCHANT_ACCOUNT_REFUSED";
  assert.equal(await refusal({ watchToken: token, account: "market" }), denied);
  assert.equal(await refusal({ watchToken: await watchTokenFor("gone") }), denied);
  assert.equal(
    await refusal({ watchToken: token }, { watchTokens: undefined }),
    "UNAUTHENTICATED WATCH_TOKENS_OFF",
  );
});

test("each watch token has its own caller name, so that streams are counted per token", async () => {
  const tokens = await Promise.all([watchTokenFor("shop"), watchTokenFor("shop")]);
  const names = await Promise.all(tokens.map(async (t) => (await who({ watchToken: t })).name));
  assert.notEqual(names[0], names[1]);
  assert.match(names[0] ?? "", /^watch:./);
});

test("a watch token that does not verify is refused, in the header and in the URL", async () => {
  const expired = { watchToken: await watchTokenFor("shop", -5_000) };
  assert.equal(await refusal(expired), "UNAUTHENTICATED WATCH_TOKEN_EXPIRED");
  const others = createWatchTokens(new Secret("x".repeat(32)));
  const forged = await others.issue(grantFor("shop"));
  for (const shown of [{ watchToken: forged }, { bearer: forged }]) {
    assert.equal(await refusal(shown), "UNAUTHENTICATED WATCH_TOKEN_INVALID");
  }
});

test("the account is the requested one, else default, else the caller's only one", async () => {
  const accountOf = async (bearer: string, account?: string) =>
    (await who({ bearer, ...(account === undefined ? {} : { account }) })).account;
  assert.equal(await accountOf("all-accounts"), "default");
  assert.equal(await accountOf("all-accounts", "market"), "market");
  assert.equal(await accountOf("shop-only"), "shop");
  assert.equal(await accountOf("two-accounts", "market"), "market");
  assert.equal(await accountOf(await signToken(key, { merchants: ["market"] })), "market");
  const refused = "PERMISSION_DENIED MERCHANT_ACCOUNT_REFUSED";
  assert.equal(await refusal({ bearer: "two-accounts" }), refused, "neither is the usual one");
  assert.equal(await refusal({ bearer: "gone-account" }), refused);
});

test("unknown accounts and accounts of other callers are refused with the same message", async () => {
  const messages = await Promise.all(
    ["default", "nowhere", "gone", "__proto__"].map((account) =>
      who({ bearer: "shop-only", account }).then(
        () => assert.fail(account),
        (error: GatewayError) => JSON.stringify([error.code, error.message, error.details]),
      ),
    ),
  );
  assert.equal(new Set(messages).size, 1);
  assert.match(messages[0] ?? "", /PERMISSION_DENIED/);
});

test("a customer token gets only default or an account it names: ids differ between merchants", async () => {
  const customer = await signToken(key, { customer_external_id: "17" });
  assert.equal((await who({ bearer: customer })).account, "default");
  assert.equal((await who({ bearer: customer, account: "default" })).account, "default");
  const refused = "PERMISSION_DENIED MERCHANT_ACCOUNT_REFUSED";
  assert.equal(await refusal({ bearer: customer, account: "shop" }), refused);
  const two = { accounts: new Set(["shop", "market"]) };
  assert.equal(await refusal({ bearer: customer }, two), refused);
  assert.equal(await refusal({ bearer: customer, account: "shop" }, two), refused);
  const ofShop = await signToken(key, { customer_external_id: "17", merchants: ["shop"] });
  assert.equal((await who({ bearer: ofShop })).account, "shop");
});

test("the customer token is read from X-CUSTOMER-AUTH alone", async () => {
  const caller = await who({ bearer: "all-accounts", customerToken: "token-of-customer" });
  assert.equal(caller.customerToken, "token-of-customer");
  assert.equal((await who({ bearer: "all-accounts" })).customerToken, undefined);
});
