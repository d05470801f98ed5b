import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { paymentTold, sendCallback } from "../gateway/callers.ts";
import { serve } from "../listen.ts";
import { closing, ofSuite } from "../of-suite.ts";
import { startBefore, startTestGateway } from "../start.ts";
import { directory } from "../stores/sqlite/directories.ts";
import { inTime } from "../until.ts";
import { run } from "./resident.ts";
import { placesOf } from "./run.ts";

const gateway = ofSuite(async () => {
  const started = await startTestGateway();
  for (const [externalId, status] of [
    ["order-1", "success"],
    ["order\u001b2", "pending"],
    ["order-3", "success"],
  ] as const) {
    await sendCallback(started, paymentTold(externalId, status));
  }
  return started;
});

const listed = (...args: string[]) => run(args, { env: placesOf(gateway) });
const time = String.raw`\d{4}-\d\d-\d\dT[\d:.]+Z`;

test("payments lists those of a state, the one that was heard of last first", async () => {
  const { code, out, err } = await listed("payments", "--state", "paid", "pending");
  assert.deepEqual([code, err], [0, ""]);
  const rows = [
    `${time}  PAID  order-3`,
    `${time}  PENDING  order\\\\u\\{1b\\}2`,
    `${time}  PAID  order-1`,
  ];
  assert.match(out, new RegExp(`^${rows.join("\n")}\n$`));
  const options = ["--limit", "1", "--since", "1h", "--json"];
  const one = await listed("payments", "--state", "paid", ...options);
  const { first_seen_at, updated_at, ...rest } = JSON.parse(one.out);
  assert.ok(first_seen_at <= updated_at);
  assert.deepEqual(rest, {
    ...{ external_id: "order-3", state: "PAID", outcome_unknown: false, needs_operator: false },
  });
});

test("an empty list says so, but not in JSON", async () => {
  const none = await listed("payouts", "--state", "unknown");
  assert.deepEqual(none, { code: 0, out: "", err: "no payouts\n" });
  const json = await listed("payments", "--needs-operator", "--json");
  assert.deepEqual(json, { code: 0, out: "", err: "" });
});

test("story tells what happened to an order, the oldest event first", async () => {
  const { code, out } = await listed("story", "order-3");
  assert.equal(code, 0);
  assert.match(
    out,
    new RegExp(`^payment order-3\n${time}  callback  .*payment success  .*→ paid\n$`),
  );
  const json = await listed("story", "order-1", "--kind", "payment", "--json");
  assert.equal(JSON.parse(json.out).state, "paid");
  const pending = await listed("story", "order\u001b2");
  assert.match(pending.out, /^payment order\\u\{1b\}2\n.*→ pending$/m);
});

/** The environment of commands at a gateway with these merchant accounts. */
async function accounts(t: TestContext, ...names: string[]): Promise<Record<string, string>> {
  const merchants = join(directory(t), "merchants.json");
  const all = names.map((name) => [name, { login: name, password: `password-of-${name}` }]);
  writeFileSync(merchants, JSON.stringify(Object.fromEntries(all)));
  const started = startBefore(createServer(), { AUTH_MODE: "none", MERCHANTS_FILE: merchants });
  return placesOf(closing(t, await started));
}

test("story looks in the only account, whatever its name", async (t) => {
  const none = await run(["story", "order-9"], { env: await accounts(t, "shop") });
  assert.deepEqual(none, { code: 1, out: "", err: "nothing is known of order-9\n" });
});

test("of several accounts none is usual: payments and story ask for --account", async (t) => {
  const env = await accounts(t, "shop", "market");
  for (const command of [["payments"], ["story", "order-9"]]) {
    const { code, err } = await run(command, { env });
    assert.equal(code, 1);
    assert.match(err, /: give --account$/m);
    const named = await run([...command, "--account", "market"], { env });
    assert.match(named.err, /^no payments$|^nothing is known of order-9$/m);
  }
});

test("story ends with 1 for an order that nobody has heard of", async () => {
  const none = await listed("story", "order-9");
  assert.deepEqual(none, { code: 1, out: "", err: "nothing is known of order-9\n" });
  const elsewhere = await listed("story", "order-9", "--admin-url", gateway.publicUrl);
  assert.equal(elsewhere.code, 1);
  assert.match(elsewhere.err, /answers, but not as a gateway's admin listener does/);
});

test("a listener that fails is none of another kind", async (t) => {
  const fails = createServer((_, response) => {
    response
      .writeHead(500, { "content-type": "application/json" })
      .end('{"error":"internal error"}');
  });
  const at = await serve(t, fails);
  for (const command of [
    ["story", "order-9"],
    ["dead-letters", "list"],
  ]) {
    const { code, err } = await run([...command, "--admin-url", at]);
    assert.deepEqual([code, err], [1, "error: the admin listener refuses (500): internal error\n"]);
  }
});

/** The status of a browser's watch by this token. */
async function watch(token: string, externalId: string): Promise<number> {
  const url = `${gateway.publicUrl}/watch/payments/${externalId}?watch_token=${token}`;
  const { status, body } = await fetch(url, inTime());
  await body?.cancel();
  return status;
}

test("a running gateway issues a token for watching this payment and no other", async () => {
  const { code, out } = await run(["token", "--external-id", "order-1", "--ttl", "2m", "--json"], {
    env: placesOf(gateway),
  });
  assert.equal(code, 0);
  const { token, expires_at } = JSON.parse(out) as { token: string; expires_at: string };
  const leftMs = Date.parse(expires_at) - Date.now();
  assert.ok(leftMs > 60_000 && leftMs <= 120_000, expires_at);
  assert.equal(await watch(token, "order-1"), 200);
  assert.equal(await watch(token, "order-2"), 403);
});

test("an unreachable gateway and another server end with 69", async () => {
  const token = (url: string) => run(["token", "--external-id", "order-1", "--url", url]);
  const nobody = await token("http://127.0.0.1:1");
  assert.equal(nobody.code, 69);
  assert.match(nobody.err, /cannot reach the gateway at http:\/\/127.0.0.1:1: .*Else give --url/);
  const other = await token(gateway.adminUrl);
  assert.equal(other.code, 69);
  assert.match(other.err, /answers, but not as a gateway's rpc listener does/);
});
