import assert from "node:assert/strict";
import { after, before, describe, it, test } from "node:test";
import { buildConsole } from "../../scripts/build-console.ts";
import type { Gateway } from "../../src/app/gateway.ts";
import { scopes } from "../../src/auth/caller.ts";
import { createWatchTokens } from "../../src/auth/watch-token.ts";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { ask } from "../ask.ts";
import { type KeyEntry, keysText, newKey, scratch } from "../auth/issuer.ts";
import { withoutChromium } from "../chromium.ts";
import { graphql as askGraphql, paymentTold, sendCallback } from "../gateway/callers.ts";
import { closing } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { browserForTests, live, rowsOf } from "./chromium.ts";

const files = scratch();
const watchSecret = "w".repeat(32);
const keys: KeyEntry[] = [
  ...scopes.map((scope) => ({ name: scope, key: newKey(), scopes: [scope] })),
  { name: "all but admin", key: newKey(), scopes: scopes.filter((scope) => scope !== "admin") },
  { name: "market", key: newKey(), scopes: ["admin"], merchants: ["market"] },
];
const keyOf = (name: string) => keys.find((entry) => entry.name === name)?.key ?? "";
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const accounts = ["shop", "market"] as const;
const merchants = accounts.map((name) => [
  name,
  // No payments service listens there, and the tests send it no call.
  { login: name, password: `password-of-${name}`, url: "http://127.0.0.1:9" },
]);
const env = {
  MERCHANTS_FILE: files.write("merchants", JSON.stringify(Object.fromEntries(merchants))),
  API_KEYS_FILE: files.write("keys", keysText(keys)),
  WATCH_TOKEN_SECRET: watchSecret,
};

let guarded: Gateway;
let open: Gateway;
before(async () => {
  await buildConsole();
  guarded = await startTestGateway({ ...env, AUTH_MODE: "keys" });
  open = await startTestGateway({ ...env, AUTH_MODE: "none" });
  for (const gateway of [guarded, open]) {
    for (const account of accounts) {
      const of = { path: `${account}/payments`, password: `password-of-${account}` };
      await sendCallback(gateway, paymentTold(`order-of-${account}`), of);
      await sendCallback(gateway, { description: account }, of);
    }
  }
});

after(() => Promise.all([guarded.stop(), open.stop()]));

const json = { "content-type": "application/json" };
/** Asks GraphQL, at either listener, about the account `shop`. */
const graphqlOf = (publicUrl: string, query: string, more: Record<string, string> = {}) =>
  askGraphql({ publicUrl }, query, { headers: { "x-merchant-account": "shop", ...more } });
const graphql = JSON.stringify({ query: "{ rateLimit { limit } }" });

const about = JSON.stringify({ account: "shop", kind: "payment", externalId: "order-of-shop" });

/** Every kind of request that only operators may send, here for the account `shop`. */
const operations: readonly (readonly [method: string, path: string, body?: string])[] = [
  ["GET", "/api/session"],
  ["GET", "/api/status?account=shop"],
  ["GET", "/api/start?account=shop"],
  ["GET", "/api/calls?account=shop"],
  ["GET", "/api/history?account=shop&kind=payment&external_id=order-of-shop"],
  ["POST", "/api/look-up", about],
  ["POST", "/api/resend-callback", about],
  ["GET", "/api/sandbox"],
  ["GET", "/dead-letters?account=shop"],
  ["GET", "/dead-letters/shop/none"],
  ["POST", "/dead-letters/shop/none/replay", "{}"],
  ["DELETE", "/dead-letters/shop/none"],
  ["POST", "/graphql", graphql],
];

type Operation = (typeof operations)[number];

async function statusOf(
  { adminUrl }: Gateway,
  [method, path, body]: Operation,
  headers: Record<string, string>,
): Promise<number> {
  const account = { "x-merchant-account": "shop" };
  const response = await fetch(adminUrl + path, {
    method,
    headers: { ...json, ...account, ...headers },
    ...(body !== undefined && { body }),
  });
  await response.text();
  return response.status;
}

const statuses = (gateway: Gateway, headers: Record<string, string>) =>
  Promise.all(operations.map((operation) => statusOf(gateway, operation, headers)));

describe("with authentication on", () => {
  const everywhere = (status: number) => operations.map(() => status);
  const admitted = [...[200, 200, 200, 200, 200, 200, 200], ...[404, 200, 404, 404, 404, 200]];

  for (const [who, headers] of [
    ["nobody", {}],
    ["a wrong key", bearer(newKey())],
    ["a key in another form", { authorization: `Basic ${keyOf("admin")}` }],
  ] as const) {
    it(`refuses ${who}`, async () => {
      assert.deepEqual(await statuses(guarded, headers), everywhere(401));
    });
  }

  it("refuses every scope but admin, alone and together, and watch tokens", async () => {
    for (const { name, key } of keys.filter((entry) => !entry.scopes.includes("admin"))) {
      assert.deepEqual(await statuses(guarded, bearer(key)), everywhere(403), name);
    }
    const token = await createWatchTokens(new Secret(watchSecret)).issue({
      account: "shop",
      kind: EventKind.PAYMENT,
      externalId: "order-of-shop",
      expiresAtMs: Date.now() + 60_000,
    });
    assert.deepEqual(await statuses(guarded, bearer(token)), everywhere(403));
    const inUrl: Operation = ["POST", `/graphql?watch_token=${token}`, graphql];
    assert.equal(await statusOf(guarded, inUrl, {}), 401);
  });

  it("admits an admin, with 404 for what does not exist", async () => {
    assert.deepEqual(await statuses(guarded, bearer(keyOf("admin"))), admitted);
  });

  it("control: without authentication every caller is an operator", async () => {
    assert.deepEqual(await statuses(open, {}), admitted);
  });

  it("serves the page itself, health and metrics to every caller", async () => {
    for (const path of ["/", "/healthz", "/readyz", "/metrics"]) {
      assert.equal((await fetch(guarded.adminUrl + path)).status, 200, path);
    }
  });

  it("shows an admin only its own accounts", async () => {
    const headers = bearer(keyOf("market"));
    const get = async (path: string) => {
      const response = await fetch(guarded.adminUrl + path, { headers });
      return [response.status, await response.json()] as const;
    };
    const [, session] = await get("/api/session");
    assert.deepEqual(session.accounts, ["market"]);
    const [, { dead_letters }] = await get("/dead-letters");
    assert.deepEqual(
      dead_letters.map(({ account }: { account: string }) => account),
      ["market"],
    );
    const { id } = dead_letters[0];
    for (const path of [
      "/api/status?account=shop",
      "/api/history?account=shop&kind=payment&external_id=order-of-shop",
    ]) {
      const [status, { error }] = await get(path);
      assert.deepEqual([status, error], [403, "the account is unknown or not yours"], path);
    }
    assert.equal((await get("/api/status?account=nobody"))[0], 403);
    assert.equal((await get(`/dead-letters/shop/${id}`))[0], 404);
    const replay: Operation = ["POST", `/dead-letters/shop/${id}/replay`, "{}"];
    assert.equal(await statusOf(guarded, replay, headers), 404);
    assert.equal(await statusOf(guarded, ["DELETE", `/dead-letters/shop/${id}`], headers), 404);
    assert.equal((await get("/dead-letters?account=shop"))[0], 403);
    const query: Operation = ["POST", "/graphql", graphql];
    assert.equal(await statusOf(guarded, query, headers), 403);
    const asked: Operation = ["POST", "/api/resend-callback", about];
    assert.equal(await statusOf(guarded, asked, headers), 403);
  });

  it("refuses GraphQL mutations, whatever scopes the caller has", async () => {
    const { errors } = await graphqlOf(
      open.adminUrl,
      `mutation {
        confirmPayment(input: {externalId: "e"}) { __typename }
        createWatchToken(input: {externalId: "e", kind: PAYMENT}) { __typename }
      }`,
    );
    assert.deepEqual(
      errors?.map(({ extensions }) => extensions.code),
      ["FORBIDDEN", "FORBIDDEN"],
    );
  });

  it("masks card tokens and IBANs in an admin's GraphQL, and not in a service's", async () => {
    const externalId = "order-with-secrets";
    const [token, iban] = ["tok_of_a_saved_card", "UA213223130000026007233566001"];
    const told = {
      ...paymentTold(externalId),
      details: { payment_id: "p-1", status: "success", recipient_iban: iban },
      payment_method: { type: "cc_token", cc_token: { token, mask: "400000******3014" } },
    };
    await sendCallback(guarded, told, { path: "shop/payments", password: "password-of-shop" });
    const query = `{
      payment(externalId: "${externalId}") {
        events { ... on PaymentEvent { payment {
          details { recipientIban }
          paymentMethod { ccToken { token mask } applePay { token } }
        } } }
      }
    }`;
    const secretsAt = async (url: string, name: string) => {
      const { data } = await graphqlOf(url, query, bearer(keyOf(name)));
      const { details, paymentMethod } = data.payment.events[0].payment;
      return [details.recipientIban, paymentMethod.ccToken, paymentMethod.applePay];
    };
    const mask = "400000******3014";
    assert.deepEqual(await secretsAt(guarded.adminUrl, "admin"), [
      "[redacted]",
      { token: "[redacted]", mask },
      null,
    ]);
    const seen = await secretsAt(guarded.publicUrl, "all but admin");
    assert.deepEqual(seen, [iban, { token, mask }, null]);
  });
});

describe("pages of other origins", () => {
  /** Sends a request with headers that `fetch` does not let a script set. */
  const send = ([method, path, body]: Operation, headers: Record<string, string>) =>
    ask(open.adminUrl + path, {
      ...{ method, headers: { "x-merchant-account": "shop", ...headers } },
      ...(body !== undefined && { body }),
    });

  for (const [what, headers] of [
    ["another port of this machine", { origin: "http://127.0.0.1:1" }],
    ["another site, by GET", { "sec-fetch-site": "cross-site" }],
  ] as const) {
    it(`get nothing and change nothing: ${what}`, async () => {
      for (const operation of operations) {
        const { status, headers: answered } = await send(operation, { ...json, ...headers });
        assert.equal(status, 403, operation[1]);
        assert.equal(answered["access-control-allow-origin"], undefined);
      }
    });
  }

  it("cannot send a POST that needs no preflight", async () => {
    for (const [method, path, body] of operations.filter(([name]) => name === "POST")) {
      if (path.startsWith("/api/sandbox")) continue;
      const form = { "content-type": "text/plain" };
      assert.equal((await send([method, path, body ?? ""], form)).status, 415, path);
      assert.notEqual((await send([method, path, body ?? ""], json)).status, 415, path);
    }
  });

  it("do not include the console's own page: its requests are served", async () => {
    const { host } = new URL(open.adminUrl);
    const own = { ...json, origin: `http://${host}`, "sec-fetch-site": "same-origin" };
    assert.equal((await send(["GET", "/api/session"], own)).status, 200);
    const before = await send(["OPTIONS", "/api/session"], own);
    assert.equal(before.headers["access-control-allow-origin"], undefined);
  });
});

test("the page is one document, and its policy forbids anything from elsewhere", async () => {
  const response = await fetch(open.adminUrl);
  const html = await response.text();
  assert.match(response.headers.get("content-type") ?? "", /^text\/html/);
  assert.equal(response.headers.get("cache-control"), "no-store");
  assert.equal(response.headers.get("x-content-type-options"), "nosniff");
  assert.equal(response.headers.get("referrer-policy"), "no-referrer");
  const policy = response.headers.get("content-security-policy") ?? "";
  assert.match(policy, /default-src 'none'; script-src 'sha256-[^ ]+'; style-src 'sha256-[^ ]+';/);
  assert.match(policy, /connect-src 'self';.*frame-ancestors 'none'/);
  assert.match(policy, /require-trusted-types-for 'script'/);
  assert.doesNotMatch(policy, /unsafe/);
  assert.doesNotMatch(html, /<(?:script|link|img|iframe)[^>]+(?:src|href)="(?!data:)/);
});

describe("signing in", { skip: withoutChromium }, () => {
  const browser = browserForTests();
  const refused = /status of 40[13]/;

  it("asks for a key with the scope admin, keeps it out of the document, and opens the page of the URL", async () => {
    await using opened = await browser.open(
      `${guarded.adminUrl}/#/shop/payments/order-of-shop`,
      refused,
    );
    const { page } = opened;
    const field = page.getByLabel("API key or token");
    const enter = async (key: string) => {
      await field.fill(key);
      await page.getByRole("button", { name: "Sign in" }).click();
    };
    await enter("not-a-key");
    await page.getByText("The API key or token is not valid.").waitFor();
    // No request can be made with it.
    await enter("a key — with a dash");
    await page.getByText("A key or token has no spaces and only ASCII.").waitFor();
    await enter(keyOf("all but admin"));
    await page.getByText("Needs the scope admin.").waitFor();
    await enter(keyOf("admin"));
    await live(page);
    await page.getByRole("heading", { name: "order-of-shop" }).waitFor();
    await page.locator("#subject .badge", { hasText: "Paid" }).waitFor();
    assert.ok(!(await page.content()).includes(keyOf("admin")));
    assert.equal(await page.evaluate("sessionStorage.length + localStorage.length"), 0);
    assert.equal(await page.evaluate("document.cookie"), "");
    await page.reload();
    await field.waitFor();
    await page.getByLabel("Remember it until this tab is closed").check();
    await enter(keyOf("admin"));
    await live(page);
    await page.reload();
    await live(page);
    await page.getByRole("heading", { name: "order-of-shop" }).waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await field.waitFor();
    assert.equal(await page.evaluate("sessionStorage.length"), 0);
  });

  it("shows only the selected account", async () => {
    await using opened = await browser.open(open.adminUrl);
    const { page } = opened;
    await rowsOf(page, "order-of-shop").waitFor();
    assert.equal(await page.locator("#sandbox").count(), 0, "there is no sandbox to play with");
    await page.getByLabel("Account").selectOption("market");
    await rowsOf(page, "order-of-market").waitFor();
    assert.equal(await rowsOf(page, "order-of-shop").count(), 0);
    const letter = page.locator("#letters .card");
    await letter.getByRole("button", { name: "Show body" }).click();
    await letter.getByText('"description": "market"').waitFor();
    await page.goto(`${open.adminUrl}/#/nobody/payments/order-of-shop`);
    await page.getByText("The account nobody is unknown or not yours.").waitFor();
  });

  it("ends at once when the key is removed, and says why", async (t) => {
    const key = newKey();
    const entry = { name: "leaves", key, scopes: ["admin"] };
    const file = { API_KEYS_FILE: files.write("leaving", keysText([entry])) };
    const gateway = closing(t, await startTestGateway({ ...env, ...file, AUTH_MODE: "keys" }));
    await using opened = await browser.open(gateway.adminUrl, refused);
    const { page } = opened;
    await page.getByLabel("API key or token").fill(key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await live(page);
    files.write("leaving", keysText([]));
    await page.getByRole("alert").waitFor();
    assert.match(await page.getByRole("alert").innerText(), /removed|not valid/);
  });
});
