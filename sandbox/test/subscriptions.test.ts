import assert from "node:assert/strict";
import { test } from "node:test";
import { assertRefused, customerToken, paths, startRig } from "./start.ts";

const active = `${paths.subscriptions}/c2a8e6f4-3b1d-4f7a-9c05-8e7d6b5a4f01`;
const locked = `${paths.subscriptions}/c2a8e6f4-3b1d-4f7a-9c05-8e7d6b5a4f02`;
const inactive = `${paths.subscriptions}/c2a8e6f4-3b1d-4f7a-9c05-8e7d6b5a4f03`;
const unknown = `${paths.subscriptions}/c2a8e6f4-3b1d-4f7a-9c05-8e7d6b5a4fff`;
const rid = "0b6f5c0e-7a51-4a0e-9f4e-5d3b8c1a2f60";

test("auto-renewal is turned off and on", async (t) => {
  const { call } = await startRig(t);
  const patch = (body: object) => call("PATCH", `${active}?external_id=demo-customer`, body);
  const off = await patch({ auto_renew: false });
  assert.equal(off.status, 200);
  assert.deepEqual(off.body, { message: "Auto-renewal is off" });
  assert.deepEqual((await patch({})).body, { message: "Auto-renewal is off" });
  assert.deepEqual((await patch({ auto_renew: true })).body, { message: "Auto-renewal is on" });
});

test("a subscription is deactivated once", async (t) => {
  const { call } = await startRig(t);
  const { status, body } = await call("DELETE", active);
  assert.equal(status, 200);
  assert.deepEqual(body, { message: "Subscription is deactivated" });
  assertRefused(await call("DELETE", active), 409, "subscription_not_active");
  assertRefused(await call("PATCH", active, { auto_renew: true }), 409, "subscription_not_active");
});

test("unknown, inactive and locked subscriptions get different errors", async (t) => {
  const { call } = await startRig(t);
  for (const [path, status, code] of [
    [unknown, 404, "subscription_not_found"],
    [inactive, 409, "subscription_not_active"],
    [locked, 409, "subscription_auto_renew_locked"],
    [`${paths.subscriptions}/1`, 400, "invalid_request_body"],
  ] as const) {
    const { status: got, body } = await call("PATCH", path, { auto_renew: false });
    assert.deepEqual([got, body.code], [status, code]);
  }
  assert.equal((await call("DELETE", unknown)).body.code, "subscription_not_found");
  const text = await call("PATCH", active, { auto_renew: "false" });
  assert.deepEqual([text.status, text.body.param], [400, "auto_renew"]);
});

test("only the subscription's customer can change it; the RID outranks the token", async (t) => {
  const { call } = await startRig(t);
  const owner = customerToken({ external_id: "demo-customer" });
  const stranger = customerToken({ external_id: "stranger" });
  const processing = customerToken({ authorization_flow: "processing" });
  const otherRid = "0b6f5c0e-7a51-4a0e-9f4e-5d3b8c1a2f61";
  for (const [headers, query, status] of [
    [{ "X-CUSTOMER-AUTH": owner }, "", 200],
    [{ "X-CUSTOMER-AUTH": processing }, "", 200],
    [{ "X-CUSTOMER-RID": rid, "X-CUSTOMER-AUTH": stranger }, "", 200],
    [{}, "?external_id=demo-customer", 200],
    [{ "X-CUSTOMER-AUTH": stranger }, "", 404],
    [{ "X-CUSTOMER-RID": otherRid, "X-CUSTOMER-AUTH": owner }, "", 404],
    [{}, "?external_id=stranger", 404],
    [{ "X-CUSTOMER-RID": "1" }, "", 400],
    [{ "X-CUSTOMER-AUTH": "nonsense" }, "", 401],
  ] as const) {
    const answer = await call(
      "PATCH",
      active + query,
      { auto_renew: true },
      headers as HeadersInit,
    );
    assert.equal(answer.status, status, JSON.stringify([headers, query]));
  }
});
