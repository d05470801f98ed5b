import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../../test/until.ts";
import {
  cardPayment,
  newPayment,
  ofRun,
  paths,
  startReceiver,
  startRig,
  startShop,
} from "./start.ts";

const dayMs = 86_400_000;

test("advancing the clock runs what is due by then, and later timestamps use the new time", async (t) => {
  const { call, sandbox, pay, get } = await startRig(t, {
    delays: { settleMs: dayMs },
    callbackRetry: { firstPauseMs: dayMs, maxPauseMs: dayMs, giveUpAfterMs: 30 * dayMs },
  });
  const receiver = await startReceiver(t, 503, 200);
  const before = Date.now();
  await pay(cardPayment("4000000000000655", { callback_url: receiver.url }));
  const pending = (await get("/sandbox/ledger")).body.payments[0].operations[0];
  assert.equal(pending.status, "pending", "it settles in a day");

  const moved = await call("POST", "/__sandbox/clock", { advance_ms: dayMs });
  assert.equal(moved.status, 200);
  assert(Date.parse(moved.body.now) >= before + dayMs);
  assert.equal((await receiver.next()).body.details.status, "success");
  // The pause before a retry begins when the callback's answer has arrived: wait for that.
  const sent = async () => (await get("/__sandbox/journal?type=callback")).body.entries;
  await until(async () => (await sent()).length > 0);
  await call("POST", "/__sandbox/clock", { advance_ms: dayMs });
  assert.equal((await receiver.next()).body.details.status, "success", "it is sent again");
  await sandbox.idle();

  await pay(newPayment({ external_id: "order-2" }));
  const [, second] = (await get("/sandbox/ledger")).body.payments;
  assert(Date.parse(second.operations[0].created_at) >= before + 2 * dayMs);
});

test("the clock advances by a whole number of milliseconds, at most a year", async (t) => {
  const { call, get } = await startRig(t);
  for (const advance_ms of [0, -1, 1.5, "1000", 366 * dayMs + 1, undefined]) {
    const { status, body } = await call("POST", "/__sandbox/clock", { advance_ms });
    assert.equal(status, 400, `${advance_ms}`);
    assert.equal(body.param, "advance_ms");
  }
  assert.equal((await get("/__sandbox/clock")).status, 200);
});

test("the journal lists requests and callbacks in order, without secrets", async (t) => {
  const { call, sandbox, pay, get } = await startShop(t, [500]);
  await pay(newPayment({ external_id: "order-1" }));
  await sandbox.idle();
  await get(`${paths.walletFind}?external_id=demo-customer`);
  await pay("{ no JSON, cvv=987");

  const { body, text } = await get("/__sandbox/journal");
  const told = body.entries.map((entry: Record<string, unknown>) => [
    entry.type,
    entry.path ?? entry.attempt,
    entry.external_id,
    entry.outcome,
  ]);
  assert.deepEqual(told, [
    ["request", paths.new, "order-1", "200"],
    ["callback", 1, "order-1", "500"],
    ["callback", 2, "order-1", "200"],
    ["request", paths.walletFind, "demo-customer", "200"],
    ["request", paths.new, "", "400"],
  ]);
  assert.deepEqual(
    body.entries.map(({ number }: { number: number }) => number),
    [1, 2, 3, 4, 5],
  );
  assert.equal(body.entries[0].body.amount, 10);
  assert.equal(body.entries[1].body.details.status, "success");
  assert.doesNotMatch(text, /4111111111111111|"123"|cvv=987/);

  const callbacks = await get("/__sandbox/journal?type=callback&external_id=order-1");
  assert.equal(callbacks.body.entries.length, 2);
  assert.equal((await get("/__sandbox/journal?type=other")).status, 400);
  await call("DELETE", "/__sandbox/journal");
  assert.deepEqual((await get("/__sandbox/journal")).body, { entries: [] });
});

test("the journal keeps the newest thousand entries, and only the length of long bodies", async (t) => {
  const { call, get } = await startRig(t);
  await call("POST", paths.resend, { external_id: "order-1", more: "x".repeat(20_000) });
  const [long] = (await get("/__sandbox/journal")).body.entries;
  assert.match(long.body, /^\[20\d\d\d characters\]$/);
  assert.equal(long.external_id, "order-1");
  for (let i = 0; i < 1_000; i++) await get(`${paths.payoutInfo}?external_id=p-${i}`);
  const { entries } = (await get("/__sandbox/journal")).body;
  assert.equal(entries.length, 1_000);
  assert.equal(entries[0].number, 2);
});

test("each run has its own login, password, ledger, journal and clock", async (t) => {
  const { call, sandbox, receiver, pay, get } = await startShop(t);
  const payment = newPayment();
  for (const headers of [ofRun("a"), ofRun("b"), {}]) {
    assert.equal((await pay(payment, headers)).status, 200, "not paid already");
  }
  assert.equal((await pay(payment, ofRun("a"))).status, 409);
  await sandbox.idle();
  for (const headers of [ofRun("a"), ofRun("b"), {}]) {
    assert.equal((await get("/sandbox/ledger", headers)).body.payments.length, 1);
  }
  const { entries } = (await get("/__sandbox/journal?type=request", ofRun("b"))).body;
  assert.equal(entries.length, 1);
  const signatures = receiver.received.map(({ headers }) => headers["x-service-signature"]);
  assert.equal(new Set(signatures).size, 3, "each is signed with its run's password");

  await call("POST", "/__sandbox/clock", { advance_ms: dayMs }, ofRun("a"));
  const nowOf = async (headers: HeadersInit) =>
    Date.parse((await get("/__sandbox/clock", headers)).body.now);
  assert((await nowOf(ofRun("a"))) - (await nowOf(ofRun("b"))) > dayMs / 2);

  for (const wrong of [
    ofRun("a", "sandbox-password"),
    ofRun("a", "sandbox-password+b"),
    ofRun("a b"),
    ofRun(""),
  ]) {
    assert.equal((await get("/sandbox/ledger", wrong)).status, 401);
  }
});

test("a page belongs to the run of its payment", async (t) => {
  const { sandbox, pay, get } = await startRig(t);
  const headers = ofRun("ui");
  const made = await pay(cardPayment("4000000000003014"), headers);
  const page = made.body.action.value as string;
  await fetch(page, { method: "POST", body: new URLSearchParams({ decision: "approve" }) });
  const { payments } = (await get("/sandbox/ledger", headers)).body;
  assert.equal(payments[0].operations[0].status, "success");
  assert(page.startsWith(sandbox.url));
});

test("beyond a hundred runs, the run that was idle the longest is dropped", async (t) => {
  const { pay, get } = await startRig(t);
  const countOf = async (run: number) =>
    (await get("/sandbox/ledger", ofRun(run))).body.payments.length;
  await pay(newPayment(), ofRun(0));
  await pay(newPayment(), ofRun(1));
  for (let run = 2; run < 100; run++) assert.equal(await countOf(run), 0);
  assert.equal(await countOf(0), 1);
  assert.equal(await countOf(100), 0);
  assert.equal(await countOf(0), 1);
  assert.equal(await countOf(1), 0, "it was forgotten, and begins anew");
});
