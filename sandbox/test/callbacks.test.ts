import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { listen } from "../../test/listen.ts";
import { until } from "../../test/until.ts";
import { pauseAfter } from "../ledger/callbacks.ts";
import { defaultCallbackRetry } from "../options.ts";
import {
  cardPayment,
  newPayment,
  password,
  paths,
  signatureOf,
  startReceiver,
  startRig,
} from "./start.ts";

test("a callback is a signed POST of the Payment transaction data", async (t) => {
  const { call } = await startRig(t);
  const receiver = await startReceiver(t);
  const request = newPayment({ callback_url: receiver.url, description: "Книга – 10 €" });
  const answer = await call("POST", paths.new, request);
  const { path, headers, bytes, body } = await receiver.next();
  assert.equal(path, "/callback");
  assert.equal(headers["content-type"], "application/json");
  assert.equal(headers["x-service-signature"], signatureOf(bytes, password));
  assert.notEqual(headers["x-service-signature"], signatureOf(bytes, "another"));
  assert.deepEqual(body, answer.body);
});

test("the pauses between attempts double up to the longest one", () => {
  const attempts = [1, 2, 3, 4, 5, 6, 7, 8, 2_000];
  const pauses = attempts.map((attempt) => pauseAfter(attempt, defaultCallbackRetry));
  assert.deepEqual(pauses, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
});

test("a callback is sent again until the answer is 200", async (t) => {
  const { call, sandbox, records } = await startRig(t);
  const receiver = await startReceiver(t, 500, 404, 302, 204, 201);
  await call("POST", paths.new, newPayment({ callback_url: receiver.url }));
  await sandbox.idle();
  assert.equal(receiver.received.length, 6);
  const [first] = receiver.received;
  for (const { bytes } of receiver.received) assert.deepEqual(bytes, first?.bytes);
  const outcomes = records.flatMap((record) =>
    record.event === "callback" ? [`${record.attempt}: ${record.outcome}`] : [],
  );
  assert.deepEqual(outcomes, ["1: 500", "2: 404", "3: 302", "4: 204", "5: 201", "6: 200"]);
});

test("an attempt that gets no answer is cut off and made again", async (t) => {
  const { call, records, sandbox } = await startRig(t, {
    callbackRetry: { firstPauseMs: 1, attemptTimeoutMs: 20, giveUpAfterMs: 1_000 },
  });
  const silent = createServer((socket) => t.after(() => socket.destroy()));
  const callback_url = `http://127.0.0.1:${await listen(silent)}/`;
  t.after(() => silent.close());
  await call("POST", paths.new, newPayment({ callback_url }));
  await sandbox.idle();
  const attempts = records.filter(({ event }) => event === "callback");
  assert.ok(attempts.length >= 2);
  assert.equal(records.at(-1)?.event, "callback_given_up");
});

test("the callbacks of one payment keep their order while one is refused", async (t) => {
  const { call } = await startRig(t);
  const receiver = await startReceiver(t, 503, 503, 503);
  const { body } = await call("POST", paths.new, newPayment({ callback_url: receiver.url }));
  await call("POST", `/sandbox/payments/${body.details.payment_id}/refund`, { amount: 4 });
  const operations = [];
  for (let index = 0; index < 5; index++) {
    operations.push((await receiver.next()).body.operation);
  }
  assert.deepEqual(operations, ["payment", "payment", "payment", "payment", "refund"]);
});

test("an address that refuses callbacks does not delay those of other payments", async (t) => {
  const { call } = await startRig(t, { callbackRetry: { firstPauseMs: 60_000 } });
  const refusing = await startReceiver(t, 500);
  const receiver = await startReceiver(t);
  await call("POST", paths.new, newPayment({ callback_url: refusing.url }));
  await refusing.next();
  await call("POST", paths.new, newPayment({ external_id: "2", callback_url: receiver.url }));
  assert.equal((await receiver.next()).body.external_id, "2");
});

test("callback/resend sends the latest or the named operation's callback again", async (t) => {
  const { call } = await startRig(t);
  const receiver = await startReceiver(t);
  const { body } = await call("POST", paths.new, newPayment({ callback_url: receiver.url }));
  const first = await receiver.next();
  await call("POST", `/sandbox/payments/${body.details.payment_id}/refund`);
  const refund = await receiver.next();
  assert.equal(refund.body.operation, "refund");

  const resend = (members: object) =>
    call("POST", paths.resend, { external_id: "order-1", ...members });
  assert.equal((await resend({})).status, 200);
  assert.deepEqual((await receiver.next()).bytes, refund.bytes);
  assert.equal((await resend({ operation: "payment" })).status, 200);
  assert.deepEqual((await receiver.next()).bytes, first.bytes);

  const cancel = await resend({ operation: "cancel" });
  assert.equal(cancel.status, 404);
  assert.equal(cancel.body.code, "transaction_not_found");
  const unknown = await resend({ external_id: "nothing" });
  assert.equal(unknown.status, 404);
  assert.equal(unknown.body.code, "transaction_not_found");
});

test("callback/resend sends a refused callback again without waiting for its pause", async (t) => {
  const { call } = await startRig(t, {
    callbackRetry: { firstPauseMs: 3_600_000, maxPauseMs: 3_600_000 },
  });
  const receiver = await startReceiver(t, 500);
  await call("POST", paths.new, newPayment({ callback_url: receiver.url }));
  const refused = await receiver.next();
  await call("POST", paths.resend, { external_id: "order-1" });
  assert.deepEqual((await receiver.next()).bytes, refused.bytes);
});

test("callback/resend is refused for a payment without a callback_url", async (t) => {
  const { call } = await startRig(t);
  await call("POST", paths.new, newPayment());
  const { status, body } = await call("POST", paths.resend, { external_id: "order-1" });
  assert.equal(status, 403);
  assert.equal(body.code, "action_not_allowed");
});

test("the number of undelivered callbacks is bounded", async (t) => {
  const { call, records } = await startRig(t, {
    maxRecords: 1,
    callbackRetry: { firstPauseMs: 60_000 },
  });
  const refusing = await startReceiver(t, 500);
  const callback_url = refusing.url;
  await call("POST", paths.new, newPayment({ callback_url }));
  await refusing.next();
  await call("POST", paths.new, newPayment({ callback_url, external_id: "2" }));
  assert.ok(records.some(({ event }) => event === "callback_dropped"));
});

test("closing ends pauses, deliveries and slow answers at once", async (t) => {
  const { call, send, sandbox } = await startRig(t, {
    callbackRetry: { firstPauseMs: 3_600_000 },
    delays: { callbackMs: 0, settleMs: 3_600_000, payoutMs: 0, slowAnswerMs: 3_600_000 },
  });
  const refusing = await startReceiver(t, 500);
  await call("POST", paths.new, newPayment({ callback_url: refusing.url }));
  await refusing.next();
  await call("POST", paths.new, cardPayment("4000000000000655", { external_id: "2" }));
  const slow = send("POST", paths.new, cardPayment("4000000000000747", { external_id: "3" }));
  await until(() => sandbox.ledger().payments.length === 3);
  await sandbox.close();
  await assert.rejects(slow);
  await assert.rejects(fetch(sandbox.url));
});
