import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { Page } from "playwright-core";
import { axeViolations, newPage, withoutChromium } from "../../../test/chromium.ts";
import { startCuttingProxy } from "../../../test/cutting-proxy.ts";
import { approve, ordersIn } from "../../../test/gateway/callers.ts";
import { closing, ofSuite } from "../../../test/of-suite.ts";
import { startTestGateway } from "../../../test/start.ts";

const gateway = ofSuite(startTestGateway);

/** Opens the checkout in a new page. `complaints` collects its script errors. */
async function shop(
  t: TestContext,
  url = gateway.publicUrl,
): Promise<{ page: Page; complaints: string[] }> {
  const page = await newPage(t);
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.goto(`${url}/demo`);
  return { page, complaints };
}
const payWith = async (page: Page, card: string) => {
  await page.getByLabel(card).check();
  await page.getByRole("button", { name: "Pay" }).click();
};
const authorization = `Basic ${btoa("sandbox:sandbox-password")}`;
/** Runs an action such as `refund` on an order's payment, as the merchant does by hand. */
const onPayment = async (order: string, action: string, body?: object) => {
  const headers = { authorization };
  const ledger = await (await fetch(`${gateway.sandboxUrl}/sandbox/ledger`, { headers })).json();
  const { payments } = ledger as { payments: { external_id: string; payment_id: string }[] };
  const payment = payments.find(({ external_id }) => external_id === order);
  const url = `${gateway.sandboxUrl}/sandbox/payments/${payment?.payment_id}/${action}`;
  const sent = body && { body: JSON.stringify(body) };
  const answer = await fetch(url, { method: "POST", headers, ...sent });
  assert.equal(answer.status, 200, await answer.text());
};
const heading = (page: Page, name: string) => page.getByRole("heading", { name }).waitFor();

describe("the demo checkout", { skip: withoutChromium }, () => {
  const proxy = ofSuite(() => startCuttingProxy(gateway.publicUrl));

  it("goes to the 3DS page and returns to a result page that updates live", async (t) => {
    const { page, complaints } = await shop(t);
    await payWith(page, "Card that asks for 3DS");
    await page.getByRole("button", { name: "Approve" }).click();
    await heading(page, "Thank you, it is paid");
    assert.match(page.url(), /\/demo\/result\?order=demo-/);
    await page.getByText("This page updates by itself.").waitFor();
    assert.match(await page.locator("#events").innerText(), /PAYMENT SUCCESS/);
    assert.deepEqual(complaints, []);
  });

  it("shows a payment that succeeded while the customer's network was cut", async (t) => {
    const { page } = await shop(t, proxy.url);
    const order = await page.locator("#order").innerText();
    await payWith(page, "Card that asks for 3DS");
    await page.getByRole("button", { name: "Approve" }).waitFor();
    const challenge = page.url();
    // The customer opens the result page before approving the payment.
    await page.goto(`${proxy.url}/demo/result?order=${order}`);
    await heading(page, "Your payment is on its way");
    await page.getByText("This page updates by itself.").waitFor();

    proxy.cut();
    await page.getByText("Connection lost").waitFor();
    await approve(challenge);
    proxy.mend();
    await heading(page, "Thank you, it is paid");
    await page.getByText("This page updates by itself.").waitFor();
  });

  it("lets a customer try another card for the same order after a decline, whatever its status", async (t) => {
    const { page } = await shop(t);
    await payWith(page, "Empty card");
    await page.getByText("There is not enough money on the card").waitFor();
    const order = await page.locator("#order").innerText();
    // It is declined by an answer with status 200.
    await payWith(page, "Blocked card");
    await page.getByText("The payment was declined").waitFor();
    await payWith(page, "Card that just works");
    await heading(page, "Thank you, it is paid");
    assert.equal(await page.locator("#order").innerText(), order);
  });

  it("gives the reason of a failure in the customer's language, and offers another try", async (t) => {
    const page = await newPage(t, { locale: "uk-UA" });
    await page.goto(`${gateway.publicUrl}/demo`);
    const order = await page.locator("#order").innerText();
    await payWith(page, "Card that asks for 3DS");
    await page.getByRole("button", { name: "Decline" }).click();
    await heading(page, "The payment did not go through");
    await page.getByText("Ви скасували платіж. Можете спробувати ще раз.").waitFor();
    assert.equal(await page.locator("#state").innerText(), "Not paid");
    await page.getByRole("link", { name: "Try again" }).click();
    await heading(page, "Checkout");
    await page.locator("#order", { hasText: order }).waitFor();
    await payWith(page, "Card that just works");
    await heading(page, "Thank you, it is paid");
    assert.equal(await page.locator("#order").innerText(), order);
    assert.equal(await page.getByRole("link", { name: "Try again" }).count(), 0);
    const ids = await ordersIn(gateway.sandboxUrl);
    assert.deepEqual(ids.filter((id) => id.startsWith(order)).sort(), [order, `${order}-2`]);
  });

  it("says in words that the shop cannot be reached", async (t) => {
    const { page } = await shop(t);
    await page.route("**/graphql", (route) => route.abort());
    await payWith(page, "Card that just works");
    await page.getByText("The shop cannot be reached. Please try again.").waitFor();
    await page.unroute("**/graphql");
    await page.getByRole("button", { name: "Pay" }).click();
    await heading(page, "Thank you, it is paid");
  });

  it("passes axe and fits a phone, light and dark", async (t) => {
    const page = await newPage(t, { viewport: { width: 375, height: 800 } });
    const clean = async () => {
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme });
        // Until it is drawn in these colours.
        await page.evaluate(() => new Promise(requestAnimationFrame));
        assert.deepEqual(await axeViolations(page, colorScheme), []);
      }
      const [width, inner] = await page.evaluate(() => [
        document.documentElement.scrollWidth,
        innerWidth,
      ]);
      assert.equal(width, inner);
    };
    await page.goto(`${gateway.publicUrl}/demo`);
    await clean();
    await payWith(page, "Card that asks for 3DS");
    await page.getByRole("button", { name: "Approve" }).waitFor();
    await clean();
    await page.goto(`${gateway.sandboxUrl}/`);
    await clean();
    await page.getByRole("link", { name: "3DS page" }).first().click();
    await page.getByRole("button", { name: "Decline" }).click();
    await heading(page, "The payment did not go through");
    await clean();
  });

  it("shows partial refunds, full refunds and cancellations", async (t) => {
    const { page } = await shop(t);
    const order = await page.locator("#order").innerText();
    await payWith(page, "Card that just works");
    await heading(page, "Thank you, it is paid");
    await onPayment(order, "refund", { amount: 50 });
    await heading(page, "A part was given back");
    assert.equal(await page.locator("#amount").innerText(), "250.00 UAH");

    const whole = await shop(t);
    const wholeOrder = await whole.page.locator("#order").innerText();
    await payWith(whole.page, "Card that just works");
    await heading(whole.page, "Thank you, it is paid");
    await onPayment(wholeOrder, "refund");
    await heading(whole.page, "The payment was given back");

    // The payment only holds the money (`confirm: false`), and the merchant cancels it.
    const held = await shop(t);
    await held.page.route("**/graphql", async (route) => {
      const body = route.request().postDataJSON();
      if (body?.variables?.input) body.variables.input.confirm = false;
      await route.continue(body ? { postData: body } : {});
    });
    const heldOrder = await held.page.locator("#order").innerText();
    await payWith(held.page, "Card that just works");
    await heading(held.page, "Thank you");
    await onPayment(heldOrder, "cancel");
    await heading(held.page, "The payment was cancelled");
  });

  it("never shows a payment as failed because its answer was lost", async (t) => {
    const { page } = await shop(t);
    await payWith(page, "Broken line");
    await heading(page, "Thank you, it is paid");
    assert.doesNotMatch(await page.locator("#events").innerText(), /FAILURE/);
  });

  it("repeats an unanswered payment with the same idempotency key, also after a reload", async (t) => {
    const { page, complaints } = await shop(t);
    const keys: string[] = [];
    let answers = false;
    await page.route("**/graphql", async (route) => {
      const key = route.request().headers()["idempotency-key"];
      if (key === undefined) return route.continue();
      keys.push(key);
      if (answers) return route.continue();
      // The payment is made, but its answer does not reach the customer.
      await route.fetch();
      return route.abort();
    });
    const order = await page.locator("#order").innerText();
    await payWith(page, "Card that just works");
    await page.getByText("no answer yet").waitFor();
    await page.reload();
    await page.getByText("no answer yet").waitFor();
    assert.equal(await page.locator("#order").innerText(), order);
    assert.equal(await page.getByLabel("Card that just works").isChecked(), true);
    assert.equal(await page.getByLabel("Empty card").isDisabled(), true);
    assert.doesNotMatch(await page.evaluate("JSON.stringify(sessionStorage)"), /41111111/);
    await page.getByRole("button", { name: "Pay" }).click();
    await page.locator("#problem:not([hidden])").waitFor();
    answers = true;
    await page.getByRole("button", { name: "Pay" }).click();
    await heading(page, "Thank you, it is paid");
    assert.equal(keys.length, 3);
    assert.equal(new Set(keys).size, 1);
    const made = await ordersIn(gateway.sandboxUrl);
    assert.equal(made.filter((id) => id === order).length, 1);
    // The next order has a key of its own.
    await page.getByRole("link", { name: "Back to the shop" }).click();
    await payWith(page, "Card that just works");
    await heading(page, "Thank you, it is paid");
    assert.equal(new Set(keys).size, 2);
    assert.deepEqual(complaints, []);
  });

  it("keeps the form disabled until its script is loaded", async (t) => {
    const page = await newPage(t);
    const asked = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    await page.route("**/demo/checkout.js", async (route) => {
      asked.resolve();
      await gate.promise;
      await route.continue();
    });
    const opened = page.goto(`${gateway.publicUrl}/demo`);
    await asked.promise;
    const button = page.getByRole("button", { name: "Pay" });
    await button.waitFor();
    assert.equal(await button.isDisabled(), true);
    assert.equal(await page.getByLabel("Card that just works").isDisabled(), true);
    gate.resolve();
    await opened;
    await payWith(page, "Card that just works");
    await heading(page, "Thank you, it is paid");
  });

  it("pays with a card on the hosted page", async (t) => {
    const { page } = await shop(t);
    await payWith(page, "Hosted page");
    await page.getByRole("button", { name: /^Pay/ }).click();
    await heading(page, "Thank you, it is paid");
  });

  it("reports an invalid token and stops reconnecting", async (t) => {
    const { page } = await shop(t);
    await page.evaluate("sessionStorage.setItem('demo-old', 'no token')");
    await page.goto(`${gateway.publicUrl}/demo/result?order=demo-old`);
    await page.getByText("This page has expired").waitFor();
    await page.getByText("This page is no longer updated.").waitFor();
  });

  it("answers 404 when callers need keys", async (t) => {
    const keys = new URL("../../../test/fixtures/no-api-keys.json", import.meta.url).pathname;
    const guarded = await startTestGateway({ AUTH_MODE: "keys", API_KEYS_FILE: keys });
    closing(t, guarded);
    assert.equal((await fetch(`${guarded.publicUrl}/demo`)).status, 404);
    assert.equal((await fetch(`${gateway.publicUrl}/demo`)).status, 200);
  });
});
