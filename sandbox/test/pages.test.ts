import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { cardPayment, newPayment, startRig, startShop } from "./start.ts";

test("a 3DS payment is pending until the customer approves it on its page", async (t) => {
  const { sandbox, receiver, pay } = await startShop(t);
  const { status, body: created } = await pay(cardPayment("4000000000003014"));
  assert.equal(status, 200);
  const { action, details } = created;
  assert.deepEqual(
    [created.action_required, created.is_success, action.type],
    [true, false, "3ds"],
  );
  assert.ok(action.value.startsWith(`${sandbox.url}/3ds/`));
  assert.deepEqual([details.status, details.status_code], ["pending", "waiting_for_redirect"]);

  const page = await fetch(action.value);
  assert.equal(page.status, 200);
  assert.match(page.headers.get("content-type") ?? "", /^text\/html/);
  assert.match(page.headers.get("content-security-policy") ?? "", /default-src 'none'/);
  const shown = await page.text();
  assert.match(shown, /<form method="post">/);
  assert.match(shown, /<button name="decision" value="approve">/);
  assert.match(shown, /400000\*{6}3014/);
  assert.equal(receiver.received.length, 0);

  const pressed = await press(action.value, { decision: "approve" });
  assert.equal(pressed.status, 303);
  const result = await fetch(new URL(pressed.headers.get("location") ?? "", sandbox.url));
  assert.match(await result.text(), /Payment successful/);
  const { body } = await receiver.next();
  assert.equal(body.details.payment_id, details.payment_id);
  assert.equal(body.details.status, "success");
  assert.deepEqual([body.action_required, body.is_success, body.action], [false, true, null]);

  await press(action.value, { decision: "decline" });
  await sandbox.idle();
  assert.equal(receiver.received.length, 1);
  assert.equal(sandbox.ledger().payments[0]?.operations[0]?.status, "success");
});

for (const result_url of ["https://shop.example/done?order=1", "myshop://done"]) {
  test(`declining 3DS fails the payment and sends the browser to ${result_url}`, async (t) => {
    const { receiver, pay } = await startShop(t);
    const { body } = await pay(cardPayment("4000000000003014", { result_url }));
    const pressed = await press(body.action.value, { decision: "decline" });
    assert.equal(pressed.status, 303);
    assert.equal(pressed.headers.get("location"), result_url);
    const { details } = (await receiver.next()).body;
    assert.equal(details.status, "failure");
    assert.equal(details.status_code, "transaction_is_canceled_by_payer");
  });
}

test("one 3DS card fails even when approved", async (t) => {
  const { receiver, pay } = await startShop(t);
  const { body } = await pay(cardPayment("4000000000003022"));
  await press(body.action.value, { decision: "approve" });
  assert.equal((await receiver.next()).body.details.status_code, "wrong_cavv");
});

test("use_3ds_flow requires 3DS even for a card that does not need it", async (t) => {
  const { pay } = await startRig(t);
  const { body } = await pay(newPayment({}, { use_3ds_flow: true }));
  assert.equal(body.action.type, "3ds");
});

for (const mode of ["hosted", "express_checkout"]) {
  test(`in mode ${mode} the card is entered on a checkout page`, async (t) => {
    const { sandbox, value, receiver } = await openCheckout(t, { mode });
    assert.ok(value.startsWith(`${sandbox.url}/checkout/`));
    const shown = await (await fetch(value)).text();
    assert.match(shown, /value="4111 1111 1111 1111"/);
    assert.match(shown, /Two &amp; a half books/);
    const pressed = await press(value, card("4111 1111 1111 1111"));
    assert.equal(pressed.status, 303);
    const { body } = await receiver.next();
    assert.equal(body.details.status, "success");
    assert.equal(body.payment_method.type, "card");
    assert.equal(body.payment_method.cc_token.mask, "411111******1111");
  });
}

test("a magic card on the checkout page triggers its scenario", async (t) => {
  const declined = await openCheckout(t);
  await press(declined.value, card("4000 0000 0000 0614"));
  const { details } = (await declined.receiver.next()).body;
  assert.equal(details.status, "failure");
  assert.equal(details.status_code, "insufficient_funds");

  const secured = await openCheckout(t);
  const toChallenge = await press(secured.value, card("4000 0000 0000 3014"));
  const challenge = toChallenge.headers.get("location") ?? "";
  assert.match(challenge, /^\/3ds\//);
  await press(secured.sandbox.url + challenge, { decision: "approve" });
  assert.equal((await secured.receiver.next()).body.details.status, "success");

  const delayed = await openCheckout(t);
  await press(delayed.value, card("4000000000000663"));
  const failed = (await delayed.receiver.next()).body.details;
  assert.equal(failed.status_code, "transaction_declined");
});

test("the checkout page refuses invalid card data, and the customer can cancel", async (t) => {
  const { value, receiver, sandbox } = await openCheckout(t);
  const wrong = [
    card("4111 1111 1111 1112"),
    { ...card("4111111111111111"), expiry: "13/35" },
    { ...card("4111111111111111"), cvv: "12" },
    {},
  ];
  for (const form of wrong) {
    const refused = await press(value, form);
    assert.equal(refused.status, 400);
    assert.match(await refused.text(), /role="alert"/);
  }
  await sandbox.idle();
  assert.equal(receiver.received.length, 0);
  const left = await press(value, { decision: "cancel" });
  assert.match(left.headers.get("location") ?? "", /^\/result\//);
  const { details } = (await receiver.next()).body;
  assert.equal(details.status_code, "transaction_is_canceled_by_payer");
});

test("pages show what a merchant sends as text, never as markup", async (t) => {
  const { sandbox, pay } = await startRig(t);
  const evil = `<script>alert("x")</script>'&`;
  const escaped = "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&#39;&amp;";
  const overrides = { external_id: evil, description: evil, products: [{ name: evil }] };
  const challenge = await pay(cardPayment("4000000000003014", overrides));
  const hosted = { ...overrides, mode: "hosted", payment_method: { type: "card" } };
  const checkout = await pay(newPayment(hosted));
  const paid = await pay(newPayment({ ...overrides, external_id: `${evil}2` }));
  for (const page of [
    challenge.body.action.value,
    checkout.body.action.value,
    paid.body.receipt_url,
    `${sandbox.url}/`,
  ]) {
    const shown = await (await fetch(page)).text();
    assert.ok(shown.includes(escaped), page);
    assert.ok(!shown.includes("<script"), page);
  }
});

test("the start page lists payments and links the pages that wait for the customer", async (t) => {
  const { sandbox, pay } = await startRig(t);
  const { body } = await pay(cardPayment("4000000000003014"));
  const listed = await (await fetch(sandbox.url)).text();
  const { pathname } = new URL(body.action.value);
  assert.ok(listed.includes(`<a href="${pathname}">3DS page</a>`));
  await press(body.action.value, { decision: "approve" });
  const after = await (await fetch(sandbox.url)).text();
  assert.ok(!after.includes(pathname));
  assert.match(after, /<td class="success">Successful<\/td>/);
});

test("an unknown page is not found", async (t) => {
  const { sandbox } = await startRig(t);
  for (const page of ["3ds", "checkout", "result", "receipt"]) {
    assert.equal((await fetch(`${sandbox.url}/${page}/nothing`)).status, 404);
  }
});

async function openCheckout(t: TestContext, overrides: object = {}) {
  const { sandbox, receiver, pay } = await startShop(t);
  const { body } = await pay(
    newPayment({
      mode: "hosted",
      payment_method: { type: "card" },
      products: [{ name: "Two & a half books", quantity: "2.5", net_amount: "4.00" }],
      ...overrides,
    }),
  );
  assert.equal(body.details.status, "pending");
  assert.equal(body.action.type, "redirect");
  assert.equal(body.action_required, true);
  return { sandbox, receiver, value: body.action.value as string };
}

/** Posts the page's form as a browser does, but does not follow the redirect. */
function press(url: string, form: Record<string, string>): Promise<Response> {
  return fetch(url, { method: "POST", body: new URLSearchParams(form), redirect: "manual" });
}

function card(number: string): Record<string, string> {
  return { decision: "pay", number, expiry: "12/35", cvv: "123" };
}
