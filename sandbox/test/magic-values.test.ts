import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { type TestContext, test } from "node:test";
import { isCardNumber } from "../ledger/cards.ts";
import { magicValues } from "../ledger/scenarios.ts";
import { cardPayment, newPayment, paths, startReceiver, startRig, startShop } from "./start.ts";

/** What a magic value leads to. */
type Expected = readonly [
  /** Its last digits but one are the cents that lead to the same. */
  card: string,
  /** HTTP status, and payment status or error code; undefined for a broken connection. */
  answer: readonly [number, string] | undefined,
  /** Statuses in the order of arrival. */
  callbacks: readonly string[],
  /** Final status and code in the ledger; undefined when nothing was charged. */
  ledger: string | undefined,
];

const paid = "success, transaction_successful";
const declined = "failure, transaction_declined";
const threeTimes = ["success", "success", "success"];
/** An Error object, and the failed operation in the ledger. */
function refused(card: string, code: string): Expected {
  return [card, [402, code], ["failure"], `failure, ${code}`];
}

const expectations: Readonly<Record<string, Expected>> = {
  insufficient_funds: refused("4000000000000614", "insufficient_funds"),
  card_expired: refused("4000000000000622", "card_expired"),
  wrong_cvv: refused("4000000000000630", "wrong_cvv"),
  anti_fraud_check: refused("4000000000000648", "anti_fraud_check"),
  delayed: ["4000000000000655", [200, "pending"], ["success"], paid],
  delayed_decline: ["4000000000000663", [200, "pending"], ["failure"], declined],
  duplicate_callbacks: ["4000000000000671", [200, "success"], threeTimes, paid],
  reordered_callbacks: ["4000000000000689", [200, "pending"], ["success", "pending"], paid],
  lost_callback: ["4000000000000697", [200, "pending"], [], paid],
  answer_lost: ["4000000000000762", undefined, ["success"], paid],
  answer_and_callback_lost: ["4000000000000713", undefined, [], paid],
  html_500: ["4000000000000721", [500, "<html>"], [], undefined],
  too_many_requests: ["4000000000000739", [429, "too_many_requests"], [], undefined],
  slow_answer: ["4000000000000747", [200, "success"], ["success"], paid],
  internal_error: ["4000000000000754", [500, "internal_error"], [], undefined],
  declined_in_payment: ["4000000000000770", [200, "failure"], ["failure"], declined],
  init: ["4000000000000788", [200, "init"], ["pending", "success"], paid],
  lookup: ["4000000000000796", [200, "success"], ["success", "success"], paid],
  receipt_pending: ["4000000000000804", [200, "success"], ["success", "success"], paid],
  receipt_failed: ["4000000000000812", [200, "success"], ["success", "success"], paid],
  batch: ["4000000000000820", [200, "success"], ["success"], paid],
  silence: ["4000000000000838", undefined, [], paid],
};

for (const [name, expected] of Object.entries(expectations)) {
  test(`${name} is triggered by its card`, (t) => meet(t, expected, cardPayment(expected[0])));
}

test("without a listed card, cents trigger the scenario of the card with these digits", async (t) => {
  const payment_method = { type: "apple_pay", apple_pay: { token: "opaque" } };
  for (const [amount, name] of [
    [12.62, "card_expired"],
    [12.8, "receipt_pending"],
  ] as const) {
    await meet(t, expectations[name]!, newPayment({ amount, payment_method }));
  }
});

test("magicValues lists these scenarios, the 3DS and success cards, and no others", () => {
  const listed = magicValues.map(({ scenario }) => scenario.name);
  const others = ["success", "3ds", "3ds_failed"];
  assert.deepEqual(listed.toSorted(), [...Object.keys(expectations), ...others].toSorted());
  assert.ok(magicValues.every(({ cards }) => cards.every(isCardNumber)));
});

test("a listed success card succeeds whatever the amount", async (t) => {
  const { pay } = await startRig(t);
  const { body } = await pay(newPayment({ amount: 10.61 }));
  assert.equal(body.details.status, "success");
});

test("the cents of a recurrent payment and of a confirmation trigger scenarios too", async (t) => {
  const { call, pay } = await startRig(t);
  const held = newPayment({ init_recurrent_payment: true, confirm: false, amount: 100 });
  const { body } = await pay(held);
  const { recurrent_id } = body.details;
  const recur = (amount: number) =>
    call("POST", paths.recurrent, { recurrent_id, external_id: "again", amount });
  assert.equal((await recur(1.61)).body.code, "insufficient_funds");
  assert.equal((await recur(1.73)).status, 429);
  assert.equal((await recur(1.65)).body.details.status, "pending");
  const confirm = (amount: number) =>
    call("POST", paths.confirm, { external_id: "order-1", amount });
  const declined = await confirm(99.64);
  assert.equal(declined.body.code, "anti_fraud_check");
  assert.equal(declined.body.payment_id, body.details.payment_id);
  await assert.rejects(confirm(99.76));
  assert.equal((await confirm(99.83)).body.code, "action_already_done");
});

test("callback/resend delivers a lost callback, and nothing for a silent payment", async (t) => {
  const { resend, sandbox, receiver, pay } = await startShop(t);
  await assert.rejects(pay(cardPayment("4000000000000838")));
  assert.equal((await resend()).status, 200);
  await pay(cardPayment("4000000000000697", { external_id: "lost" }));
  await sandbox.idle();
  assert.equal(receiver.received.length, 0);
  await resend({ external_id: "lost" });
  assert.equal((await receiver.next()).body.external_id, "lost");
});

test("the three duplicates have the same bytes; the late pending one has the same payment_id", async (t) => {
  const { receiver, pay } = await startShop(t);
  await pay(cardPayment("4000000000000671"));
  const [one, two, three] = [await receiver.next(), await receiver.next(), await receiver.next()];
  assert.deepEqual(two.bytes, one.bytes);
  assert.deepEqual(three.bytes, one.bytes);
  await pay(cardPayment("4000000000000689", { external_id: "2" }));
  const [success, pending] = [(await receiver.next()).body, (await receiver.next()).body];
  assert.equal(pending.details.payment_id, success.details.payment_id);
  assert.equal(pending.details.operation_id, success.details.operation_id);
  assert.equal(pending.details.processed_at, undefined);
  assert.equal(pending.is_success, false);
});

test("a slow answer's callback arrives before the answer", async (t) => {
  const { send } = await startRig(t, { delays: { slowAnswerMs: 3_600_000 } });
  const receiver = await startReceiver(t);
  const abort = new AbortController();
  const payment = cardPayment("4000000000000747", { callback_url: receiver.url });
  const answer = send("POST", paths.new, payment, { signal: abort.signal });
  assert.equal((await receiver.next()).body.details.status, "success");
  abort.abort();
  await assert.rejects(answer, { name: "AbortError" });
});

test("the magic 429 has X-RateLimit-Remaining and X-RateLimit-Reset", async (t) => {
  const { headers } = await (await startRig(t)).pay(cardPayment("4000000000000739"));
  assert.equal(headers.get("x-ratelimit-remaining"), "0");
  assert.equal(headers.get("x-ratelimit-reset"), "1");
});

test("a decline with status 200 is payment data, also for confirmations", async (t) => {
  const { confirm, pay } = await startRig(t);
  const { status, body } = await pay(cardPayment("4000000000000770"));
  assert.equal(status, 200);
  const { is_success, operation, details, code } = body;
  assert.deepEqual([is_success, operation, code], [false, "payment", undefined]);
  assert.deepEqual(
    [details.status, details.status_code, details.status_description],
    ["failure", "transaction_declined", "Transaction is declined"],
  );
  await pay(newPayment({ confirm: false, amount: 100 }));
  const confirmed = await confirm({ amount: 99.77 });
  assert.deepEqual(
    [confirmed.status, confirmed.body.operation, confirmed.body.details.status],
    [200, "confirm", "failure"],
  );
});

test("status init has its own status_code, and operation info reports it as pending", async (t) => {
  const { act, sandbox, pay, get } = await startRig(t, { delays: { callbackMs: 3_600_000 } });
  const begun = await pay(cardPayment("4000000000000788"));
  const { status_code, operation_id } = begun.body.details;
  assert.equal(status_code, "transaction_created");
  const query = new URLSearchParams({ external_id: "order-1", operation_id });
  const info = await get(`${paths.operation}?${query}`);
  assert.deepEqual([info.body.status, info.body.status_code], ["pending", "pending"]);
  await act(begun, "settle", { status: "success" });
  assert.equal(sandbox.ledger().payments[0]?.operations[0]?.status, "success");
});

test("a lookup is a separate operation on the same payment", async (t) => {
  const { receiver, pay } = await startShop(t);
  await pay(cardPayment("4000000000000796"));
  const [payment, lookup] = [(await receiver.next()).body, (await receiver.next()).body];
  assert.deepEqual([payment.operation, lookup.operation], ["payment", "lookup"]);
  assert.equal(lookup.details.payment_id, payment.details.payment_id);
  assert.notEqual(lookup.details.operation_id, payment.details.operation_id);
});

test("callbacks report a receipt's registration and differ in nothing else", async (t) => {
  const { receiver, pay } = await startShop(t);
  for (const [payload, number, expected] of [
    ["p", "4000000000000804", ["Pending 1002", "Success 1001"]],
    ["p", "4000000000000812", ["Pending 1002", "Failed 2001"]],
    ["fiscal-4050", "4111111111111111", ["Pending 1002", "Failed 4050"]],
    ["fiscal-1000", "4111111111111111", ["Pending 1002", "Success 1000"]],
    ["fiscal-1002", "4111111111111111", ["Pending 1002"]],
    ["fiscal-1234", "4111111111111111", [undefined]],
  ] as const) {
    await pay(cardPayment(number, { external_id: `${payload}-${number}`, payload }));
    const bodies = [];
    for (const _ of expected) bodies.push((await receiver.next()).body);
    const told = bodies.map(
      ({ details: { fiscalization: f } }) => f && `${f.status} ${f.status_code}`,
    );
    assert.deepEqual(told, expected);
    const others = bodies.map(({ details: { fiscalization: _, ...rest }, ...body }) => ({
      ...body,
      details: rest,
    }));
    for (const other of others) assert.deepEqual(other, others[0]);
  }
});

test("payments of a batch share its batch_external_id", async (t) => {
  const { call } = await startRig(t);
  const pay = async (external_id: string, number: string) =>
    (await call("POST", paths.new, cardPayment(number, { external_id }))).body.batch_external_id;
  assert.equal(await pay("1", "4000000000000820"), "sandbox-batch-1");
  assert.equal(await pay("2", "4000000000000820"), "sandbox-batch-1");
  assert.equal(await pay("3", "4111111111111111"), undefined);
});

test("docs/sandbox.md lists every magic value", async () => {
  const text = await readFile(new URL("../../docs/sandbox.md", import.meta.url), "utf8");
  const rows = text.split("\n").filter((line) => line.startsWith("| "));
  for (const { scenario, cards, cents } of magicValues) {
    for (const card of cards) {
      const spaced = card.replaceAll(/(.{4})(?=.)/g, "$1 ");
      const row = rows.find((line) => line.includes(spaced)) ?? "";
      assert.ok(row.includes(scenario.summary), `${scenario.name}: ${scenario.summary}`);
      assert.ok(cents === undefined || row.includes(`.${cents}`), scenario.name);
    }
  }
});

async function meet(
  t: TestContext,
  [, expected, callbacks, state]: Expected,
  payment: object,
): Promise<void> {
  const { sandbox, receiver, pay } = await startShop(t);
  const answer = pay(payment);
  if (expected === undefined) {
    await assert.rejects(answer, { name: "TypeError" });
  } else {
    const { status, body, text } = await answer;
    const told = body?.details?.status ?? body?.code ?? text.slice(0, 6);
    assert.deepEqual([status, told], expected);
  }
  await sandbox.idle();
  const [charged] = sandbox.ledger().payments;
  const operation = charged?.operations[0];
  assert.equal(operation && `${operation.status}, ${operation.status_code}`, state);
  const statuses = receiver.received.map(({ body }) => body.details.status);
  assert.deepEqual(statuses, callbacks);
}
