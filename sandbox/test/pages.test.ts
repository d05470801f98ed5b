import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { cardPayment, newPayment, paths, type Rig, startReceiver, startRig } from "./start.ts";

test("a 3DS payment is pending until the customer approves it on its page", async (t) => {
  const { call, sandbox } = await startRig(t);
  const receiver = await startReceiver(t);
  const created = await call(
    "POST",
    paths.new,
    cardPayment("4000000000003014", { callback_url: receiver.url }),
  );
  assert.equal(created.status, 200);
  assert.equal(created.body.action_required, true);
  assert.equal(created.body.action.type, "3ds");
  assert.ok(created.body.action.value.startsWith(`${sandbox.url}/3ds/`));
  assert.equal(created.body.details.status, "pending");
  assert.equal(created.body.details.status_code, "waiting_for_redirect");
  assert.equal(created.body.is_success, false);

  const page = await fetch(created.body.action.value);
  assert.equal(page.status, 200);
  assert.match(page.headers.get("content-type") ?? "", /^text\/html/);
  assert.match(page.headers.get("content-security-policy") ?? "", /default-src 'none'/);
  const shown = await page.text();
  assert.match(shown, /<form method="post">/);
  assert.match(shown, /<button name="decision" value="approve">/);
  assert.match(shown, /400000\*{6}3014/);
  assert.equal(receiver.received.length, 0);

  const pressed = await press(created.body.action.value, { decision: "approve" });
  assert.equal(pressed.status, 303);
  const result = await fetch(new URL(pressed.headers.get("location") ?? "", sandbox.url));
  assert.match(await result.text(), /Payment successful/);
  const { body } = await receiver.next();
  assert.equal(body.details.payment_id, created.body.details.payment_id);
  assert.equal(body.details.status, "success");
  assert.equal(body.action, null);
  assert.equal(body.action_required, false);
  assert.equal(body.is_success, true);

  await press(created.body.action.value, { decision: "decline" });
  await sandbox.idle();
  assert.equal(receiver.received.length, 1);
  assert.equal(sandbox.ledger().payments[0]?.operations[0]?.status, "success");
});

for (const result_url of ["https://shop.example/done?order=1", "myshop://done"]) {
  test(`declining 3DS fails the payment and sends the browser to ${result_url}`, async (t) => {
    const { call } = await startRig(t);
    const receiver = await startReceiver(t);
    const payment = cardPayment("4000000000003014", { callback_url: receiver.url, result_url });
    const { body } = await call("POST", paths.new, payment);
    const pressed = await press(body.action.value, { decision: "decline" });
    assert.equal(pressed.status, 303);
    assert.equal(pressed.headers.get("location"), result_url);
    const { details } = (await receiver.next()).body;
    assert.equal(details.status, "failure");
    assert.equal(details.status_code, "transaction_is_canceled_by_payer");
  });
}

test("one 3DS card fails even when approved", async (t) => {
  const { call } = await startRig(t);
  const receiver = await startReceiver(t);
  const payment = cardPayment("4000000000003022", { callback_url: receiver.url });
  const { body } = await call("POST", paths.new, payment);
  await press(body.action.value, { decision: "approve" });
  assert.equal((await receiver.next()).body.details.status_code, "wrong_cavv");
});

test("use_3ds_flow requires 3DS even for a card that does not need it", async (t) => {
  const { call } = await startRig(t);
  const { body } = await call("POST", paths.new, newPayment({}, { use_3ds_flow: true }));
  assert.equal(body.action.type, "3ds");
});

for (const mode of ["hosted", "express_checkout"]) {
  test(`in mode ${mode} the card is entered on a checkout page`, async (t) => {
    const { rig, value, receiver } = await openCheckout(t, { mode });
    assert.ok(value.startsWith(`${rig.sandbox.url}/checkout/`));
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
  await press(secured.rig.sandbox.url + challenge, { decision: "approve" });
  assert.equal((await secured.receiver.next()).body.details.status, "success");

  const delayed = await openCheckout(t);
  await press(delayed.value, card("4000000000000663"));
  const failed = (await delayed.receiver.next()).body.details;
  assert.equal(failed.status_code, "transaction_declined");
});

test("the checkout page refuses invalid card data, and the customer can cancel", async (t) => {
  const { value, receiver, rig } = await openCheckout(t);
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
  await rig.sandbox.idle();
  assert.equal(receiver.received.length, 0);
  const left = await press(value, { decision: "cancel" });
  assert.match(left.headers.get("location") ?? "", /^\/result\//);
  const { details } = (await receiver.next()).body;
  assert.equal(details.status_code, "transaction_is_canceled_by_payer");
});

test("pages show what a merchant sends as text, never as markup", async (t) => {
  const { call, sandbox } = await startRig(t);
  const evil = `<script>alert("x")</script>'&`;
  const escaped = "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&#39;&amp;";
  const overrides = { external_id: evil, description: evil, products: [{ name: evil }] };
  const challenge = await call("POST", paths.new, cardPayment("4000000000003014", overrides));
  const hosted = { ...overrides, mode: "hosted", payment_method: { type: "card" } };
  const checkout = await call("POST", paths.new, newPayment(hosted));
  const paid = await call("POST", paths.new, newPayment({ ...overrides, external_id: `${evil}2` }));
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
  const { call, sandbox } = await startRig(t);
  const { body } = await call("POST", paths.new, cardPayment("4000000000003014"));
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
  const rig: Rig = await startRig(t);
  const receiver = await startReceiver(t);
  const { body } = await rig.call(
    "POST",
    paths.new,
    newPayment({
      mode: "hosted",
      payment_method: { type: "card" },
      callback_url: receiver.url,
      products: [{ name: "Two & a half books", quantity: "2.5", net_amount: "4.00" }],
      ...overrides,
    }),
  );
  assert.equal(body.details.status, "pending");
  assert.equal(body.action.type, "redirect");
  assert.equal(body.action_required, true);
  return { rig, receiver, value: body.action.value as string };
}

/** Posts the page's form as a browser does, but does not follow the redirect. */
function press(url: string, form: Record<string, string>): Promise<Response> {
  return fetch(url, { method: "POST", body: new URLSearchParams(form), redirect: "manual" });
}

function card(number: string): Record<string, string> {
  return { decision: "pay", number, expiry: "12/35", cvv: "123" };
}
