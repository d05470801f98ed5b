import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { listen } from "../../test/listen.ts";
import { until } from "../../test/until.ts";
import { pauseAfter } from "../ledger/callbacks.ts";
import { defaultCallbackRetry } from "../options.ts";
import {
  assertRefused,
  basic,
  cardPayment,
  newPayment,
  password,
  paths,
  signatureOf,
  startReceiver,
  startRig,
  startShop,
} from "./start.ts";

test("a callback is a signed POST of the Payment transaction data", async (t) => {
  const { receiver, pay } = await startShop(t);
  const answer = await pay(newPayment({ description: "Книга – 10 €" }));
  const { path, headers, bytes, body } = await receiver.next();
  assert.equal(path, "/callback");
  assert.equal(headers["content-type"], "application/json");
  assert.equal(headers["x-service-signature"], signatureOf(bytes, password));
  assert.notEqual(headers["x-service-signature"], signatureOf(bytes, "another"));
  assert.deepEqual(body, answer.body);
});

test("a callback takes along the user name and the password of its address", async (t) => {
  const { receiver, pay } = await startShop(t);
  await pay(newPayment({ callback_url: receiver.url.replace("//", "//shop:p%40ss@") }));
  const { authorization } = (await receiver.next()).headers;
  assert.equal(authorization, basic("shop", "p@ss").authorization);
});

test("the pauses between attempts double up to the longest one", () => {
  const attempts = [1, 2, 3, 4, 5, 6, 7, 8, 2_000];
  const pauses = attempts.map((attempt) => pauseAfter(attempt, defaultCallbackRetry));
  assert.deepEqual(pauses, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
});

test("a callback is sent again until the answer is 200", async (t) => {
  const { sandbox, records, receiver, pay } = await startShop(t, [500, 404, 302, 204, 201]);
  await pay(newPayment());
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
  const { records, sandbox, pay, call } = await startRig(t, {
    callbackRetry: { firstPauseMs: 1, attemptTimeoutMs: 20, giveUpAfterMs: 3_600_000 },
  });
  const silent = createServer((socket) => t.after(() => socket.destroy()));
  const callback_url = `http://127.0.0.1:${await listen(silent)}/`;
  t.after(() => silent.close());
  await pay(newPayment({ callback_url }));
  await until(() => records.filter(({ event }) => event === "callback").length >= 2);
  await call("POST", "/__sandbox/clock", { advance_ms: 3_600_000 });
  await sandbox.idle();
  assert.equal(records.at(-1)?.event, "callback_given_up");
});

test("the callbacks of one payment keep their order while one is refused", async (t) => {
  const { act, receiver, pay } = await startShop(t, [503, 503, 503]);
  await act(await pay(newPayment()), "refund", { amount: 4 });
  const operations = [];
  for (let index = 0; index < 5; index++) {
    operations.push((await receiver.next()).body.operation);
  }
  assert.deepEqual(operations, ["payment", "payment", "payment", "payment", "refund"]);
});

test("an address that refuses callbacks does not delay those of other payments", async (t) => {
  const { receiver, pay } = await startShop(t, [], { callbackRetry: { firstPauseMs: 60_000 } });
  const refusing = await startReceiver(t, 500);
  await pay(newPayment({ callback_url: refusing.url }));
  await refusing.next();
  await pay(newPayment({ external_id: "2" }));
  assert.equal((await receiver.next()).body.external_id, "2");
});

test("callback/resend sends the latest or the named operation's callback again", async (t) => {
  const { act, resend, receiver, pay } = await startShop(t);
  const paid = await pay(newPayment());
  const first = await receiver.next();
  await act(paid, "refund");
  const refund = await receiver.next();
  assert.equal(refund.body.operation, "refund");

  assert.equal((await resend()).status, 200);
  assert.deepEqual((await receiver.next()).bytes, refund.bytes);
  assert.equal((await resend({ operation: "payment" })).status, 200);
  assert.deepEqual((await receiver.next()).bytes, first.bytes);

  assertRefused(await resend({ operation: "cancel" }), 404, "transaction_not_found");
  assertRefused(await resend({ external_id: "nothing" }), 404, "transaction_not_found");
});

test("callback/resend sends a refused callback again without waiting for its pause", async (t) => {
  const callbackRetry = { firstPauseMs: 3_600_000, maxPauseMs: 3_600_000 };
  const { resend, receiver, pay } = await startShop(t, [500], { callbackRetry });
  await pay(newPayment());
  const refused = await receiver.next();
  await resend();
  assert.deepEqual((await receiver.next()).bytes, refused.bytes);
});

test("callback/resend is refused for a payment without a callback_url", async (t) => {
  const { resend, pay } = await startRig(t);
  await pay(newPayment());
  assertRefused(await resend(), 403, "action_not_allowed");
});

test("the number of undelivered callbacks is bounded", async (t) => {
  const options = { maxRecords: 1, callbackRetry: { firstPauseMs: 60_000 } };
  const { records, receiver, pay } = await startShop(t, [500], options);
  await pay(newPayment());
  await receiver.next();
  await pay(newPayment({ external_id: "2" }));
  assert.ok(records.some(({ event }) => event === "callback_dropped"));
});

test("closing ends pauses, deliveries and slow answers at once", async (t) => {
  const { send, sandbox, receiver, pay } = await startShop(t, [500], {
    callbackRetry: { firstPauseMs: 3_600_000 },
    delays: { callbackMs: 0, settleMs: 3_600_000, payoutMs: 0, slowAnswerMs: 3_600_000 },
  });
  await pay(newPayment());
  await receiver.next();
  await pay(cardPayment("4000000000000655", { external_id: "2" }));
  const slow = send("POST", paths.new, cardPayment("4000000000000747", { external_id: "3" }));
  await until(() => sandbox.ledger().payments.length === 3);
  await sandbox.close();
  await assert.rejects(slow);
  await assert.rejects(fetch(sandbox.url));
});
