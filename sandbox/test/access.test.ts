import assert from "node:assert/strict";
import { test } from "node:test";
import { createRateLimit } from "../api/rate-limit.ts";
import { assertRefused, basic, newPayment, paths, startRig, uuidPattern } from "./start.ts";

const endpoints = [
  ["POST", paths.new],
  ["POST", paths.recurrent],
  ["POST", paths.confirm],
  ["POST", paths.resend],
  ["POST", paths.requestPayout],
  ["GET", paths.payoutInfo],
  ["GET", paths.walletFind],
  ["GET", paths.walletStatus],
  ["DELETE", paths.wallet],
  ["PATCH", `${paths.subscriptions}/c2a8e6f4-3b1d-4f7a-9c05-8e7d6b5a4f01`],
  ["DELETE", `${paths.subscriptions}/c2a8e6f4-3b1d-4f7a-9c05-8e7d6b5a4f01`],
  ["GET", paths.operation],
  ["GET", "/sandbox/ledger"],
] as const;

test("every endpoint refuses calls without the merchant's credentials", async (t) => {
  const { sandbox, call } = await startRig(t);
  const wrong = [
    {},
    { authorization: "Bearer sandbox-password" },
    { authorization: "Basic !" },
    basic("sandbox", "wrong"),
    basic("wrong", "sandbox-password"),
    basic("sandbox", "sandbox-passwor"),
  ];
  for (const [method, path] of endpoints) {
    for (const headers of wrong) {
      const response = await fetch(sandbox.url + path, { method, headers });
      assert.equal(response.status, 401, `${method} ${path} with ${JSON.stringify(headers)}`);
      const { error_id, ...error } = (await response.json()) as Record<string, string>;
      assert.match(error_id ?? "", uuidPattern);
      assert.deepEqual(error, {
        code: "authorization_failed",
        message: "Authorization failed",
        type: "invalid_request_error",
      });
    }
    const allowed = await call(method, path);
    assert.notEqual(allowed.status, 401, `${method} ${path}`);
  }
});

test("a path or method that is not in the spec gets an Error object", async (t) => {
  const { call, get } = await startRig(t);
  const unknown = await call("POST", "/api/payments/v2/new", newPayment());
  assertRefused(unknown, 404, "action_not_allowed");
  assert.match(unknown.body.error_id, uuidPattern);
  assertRefused(await get(paths.new), 405, "action_not_allowed");
});

test("a body that is not a JSON object of at most 1 MiB is refused without being quoted", async (t) => {
  const { send, pay } = await startRig(t);
  for (const body of ["", "4111111111111111", '{"number":"4111111111111111"', "[]", "null"]) {
    const refused = await pay(body);
    assertRefused(refused, 400, "invalid_request_body", "body");
    assert.ok(!refused.text.includes("41111111"));
  }
  const large = await send("POST", paths.new, `"${"x".repeat(1024 * 1024)}"`);
  assert.equal(large.status, 413);
});

test("every API answer has the rate limit headers, and calls beyond the limit get 429", async (t) => {
  const { get } = await startRig(t, { rateLimit: 2 });
  const first = await get(paths.payoutInfo);
  assert.equal(first.status, 400);
  assert.equal(first.headers.get("x-ratelimit-limit"), "2");
  assert.equal(first.headers.get("x-ratelimit-remaining"), "1");
  assert.equal(first.headers.get("x-ratelimit-reset"), "1");
  // So many that some are too many, however long a busy machine takes for them.
  const more = await Promise.all(Array.from({ length: 50 }, () => get(paths.payoutInfo)));
  const rejected = more.find(({ status }) => status === 429) ?? assert.fail();
  assert.equal(rejected.headers.get("x-ratelimit-remaining"), "0");
  const { error_id, ...error } = rejected.body;
  assert.match(error_id, uuidPattern);
  assert.deepEqual(error, {
    code: "too_many_requests",
    message: "Too many requests",
    type: "api_error",
  });
});

test("the rate limit refills evenly up to the limit", () => {
  let now = 0;
  const limit = createRateLimit(10, () => now);
  const takeAll = () => {
    let taken = 0;
    while (limit.take()) taken++;
    return taken;
  };
  assert.equal(takeAll(), 10);
  assert.deepEqual(limit.headers(), {
    "X-RateLimit-Limit": "10",
    "X-RateLimit-Remaining": "0",
    "X-RateLimit-Reset": "1",
  });
  now = 99;
  assert.equal(takeAll(), 0);
  now = 100;
  assert.equal(takeAll(), 1);
  now = 600;
  assert.equal(takeAll(), 5);
  now = 60_000;
  assert.equal(limit.headers()["X-RateLimit-Reset"], "0");
  assert.equal(takeAll(), 10);
});

test("log records hold no card number, token or password", async (t) => {
  const { call, records, pay } = await startRig(t);
  const payment = await pay(newPayment());
  await call("POST", `${paths.new}/4111111111111111`, newPayment());
  await pay(newPayment({}, { number: "4111111111111112" }));
  assert.ok(records.length >= 3);
  const logged = JSON.stringify(records);
  for (const secret of [
    "411111111111111",
    payment.body.payment_method.cc_token.token,
    "sandbox-password",
  ]) {
    assert.ok(!logged.includes(secret));
  }
});
