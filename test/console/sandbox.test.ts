import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Page } from "playwright-core";
import { magicValues } from "../../sandbox/ledger/scenarios.ts";
import type { Calls } from "../../src/admin/console-api.ts";
import type { Gateway } from "../../src/app/gateway.ts";
import { withoutChromium } from "../chromium.ts";
import { postCallback, sendCallback } from "../gateway/callers.ts";
import { closing, ofSuite } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { until } from "../until.ts";
import { browserForTests, goTo, live, rowsOf } from "./chromium.ts";

describe("the console of a fresh gateway", { skip: withoutChromium }, () => {
  const browser = browserForTests();
  const gateway = ofSuite(() => startTestGateway({ RECONCILE_AFTER: "500ms" }));

  const tryAt = ({ adminUrl }: Gateway) => browser.open(`${adminUrl}/#/default/try`);
  const press = (page: Page, name: string) =>
    page.getByRole("button", { name, exact: true }).click();
  const tried = (page: Page, text: string) => page.locator(".tried .card", { hasText: text });

  it("shows a 3DS payment succeed live, from the press to the customer's approval", async () => {
    await using opened = await tryAt(gateway);
    const { page } = opened;
    await live(page);
    await page.getByText("No events yet").waitFor();
    for (const name of ["GraphiQL", "Demo shop", "Sandbox's ledger"]) {
      const href = await page.getByRole("link", { name }).getAttribute("href");
      assert.equal((await fetch(new URL(href ?? "", page.url()))).status, 200, name);
    }
    await press(page, "Pay with 3DS");
    const card = tried(page, "3DS");
    await card.getByText("Pending").waitFor();
    const [bank] = await Promise.all([
      page.context().waitForEvent("page"),
      card.getByRole("link", { name: "Open the 3DS page" }).click(),
    ]);
    assert.equal(await bank.evaluate("window.opener"), null);
    await bank.getByRole("button", { name: "Approve" }).click();
    await card.locator(".badge", { hasText: "Paid" }).waitFor();
    const action = card.getByRole("link", { name: "Open the 3DS page" });
    assert.equal(await action.count(), 0, "nothing is left to do there");
    const id = await card.locator(".card-head a").innerText();
    await rowsOf(page, id).filter({ hasText: "by callback" }).waitFor();
    // On a slow machine a look-up may add a row in between.
    for (const source of ["by answer", "by callback"]) {
      assert.equal(await rowsOf(page, id).filter({ hasText: source }).count(), 1, source);
    }
  });

  it("shows a payment on a page with a URL of its own, secrets masked", async () => {
    await using opened = await tryAt(gateway);
    const { page } = opened;
    await press(page, "Pay");
    const link = page.locator(".tried .card-head a");
    const id = await link.innerText();
    await rowsOf(page, id).filter({ hasText: "by callback" }).getByText("Paid").waitFor();
    await link.click();
    const url = `${gateway.adminUrl}/#/default/payments/${id}`;
    assert.equal(page.url(), url);
    const subject = page.locator("#subject");
    await subject.getByText("Nothing more: it is paid.").waitFor();
    await subject.getByText("10.00 UAH").waitFor();
    await page.locator("#operations").getByText("success: transaction successful").waitFor();
    await page.reload();
    const event = page.locator("#history li", { hasText: "The service's callback" });
    await page.locator("#history li", { hasText: "The service's answer" }).waitFor();
    await event.getByText("Callback, secrets masked").click();
    const { details, payment_method } = JSON.parse(await event.locator("pre").innerText());
    assert.equal(details.amount, "10.00");
    assert.equal(details.status, "success");
    assert.match(payment_method.cc_token.mask, /^\d{6}\*+\d{4}$/);
    assert.equal(payment_method.cc_token.token, "[redacted]");
    await event.locator("dd", { hasText: details.payment_id }).waitFor();
    await subject.getByRole("link", { name: "Payments" }).click();
    await page.getByLabel("External id or payment id").fill(details.payment_id);
    await page.getByRole("button", { name: "Search" }).click();
    await page.locator("#list a.row", { hasText: id }).click();
    await subject.waitFor();
    assert.equal(page.url(), url);
  });

  it("makes a payment with each magic value, and shows what callers received", async () => {
    await using opened = await tryAt(gateway);
    const { page } = opened;
    await press(page, "One of each");
    await page.getByText("One payment with each magic value was made.").waitFor();
    assert.equal(await page.locator(".tried .card").count(), magicValues.length);
    await tried(page, "Insufficient funds").locator(".badge", { hasText: "Failed" }).waitFor();
    await tried(page, "Too many requests").getByText("RESOURCE_EXHAUSTED").waitFor();
    // The gateway looked it up, since neither response nor callback arrived.
    await tried(page, "Answer and callback lost").locator(".badge", { hasText: "Paid" }).waitFor();
    await goTo(page, "Watch");
    await page.locator("#budget .caption").getByText("requests sent").waitFor();
    const failed = page.locator("#upstream .bad-text");
    // The page polls this number.
    await until(async () => Number(await failed.innerText()) >= 3);
  });

  it("makes payouts by card and by amount", async () => {
    await using opened = await tryAt(gateway);
    const { page } = opened;
    await page.getByText("All magic values").click();
    const challenges = page.getByRole("button", { name: /^Payout, 3DS/ });
    assert.equal(await challenges.count(), 0, "a payout has no customer");
    await press(page, "Payout, Insufficient funds, 10.61");
    await tried(page, "payout · Insufficient funds")
      .locator(".badge", { hasText: "Failed" })
      .waitFor();
    await rowsOf(page, "10.61 UAH").filter({ hasText: "payout" }).first().waitFor();
    await press(page, "Payout, Success, …1111");
    await tried(page, "payout · Success").locator(".badge", { hasText: "Paid" }).waitFor();
  });

  it("shows an unknown outcome, its age, the next step and the time of giving up", async (t) => {
    const patient = closing(t, await startTestGateway({ RECONCILE_AFTER: "60s" }));
    await using opened = await browser.open(patient.adminUrl);
    const { page } = opened;
    const calls = page.locator("#calls");
    await calls.getByText("Every call that moved money has its answer.").waitFor();
    await goTo(page, "Try it");
    await press(page, "Lose answer");
    await rowsOf(page, "Outcome unknown").waitFor();
    await goTo(page, "Watch");
    const card = calls.locator(".card");
    await card.getByText("Outcome unknown").waitFor();
    await card.getByText(/create payment · .+ ago/).waitFor();
    await card.getByText(/Asks for the callback again in \d+\ss; gives up in 24\sh\./).waitFor();
    // The operator does not wait, and is told what that costs.
    await card.getByRole("link").click();
    const subject = page.locator("#subject");
    const asks = async (name: string, answer: "Cancel" | undefined) => {
      await subject.getByRole("button", { name }).click();
      const ask = page.getByRole("dialog");
      await ask.getByText(/It costs a request of the rate budget/).waitFor();
      await ask.getByRole("button", { name: answer ?? name }).click();
      await ask.waitFor({ state: "detached" });
    };
    await asks("Look up now", "Cancel");
    await asks("Look up now", undefined);
    await subject.getByText("The gateway looks it up now.").waitFor();
    await subject.getByText("Nothing more: it is paid.").waitFor();
    await asks("Ask for the callback again", undefined);
    await subject.getByText("The payments service took the request.").waitFor();
    assert.equal(await subject.getByRole("button", { name: "Look up now" }).count(), 0);
  });

  it("shows which outcomes an operator has to find out", async (t) => {
    const hasty = closing(
      t,
      await startTestGateway({ RECONCILE_AFTER: "100ms", RECONCILE_GIVE_UP: "500ms" }),
    );
    await using opened = await tryAt(hasty);
    const { page } = opened;
    await page.getByText("All magic values").click();
    await page.getByRole("button", { name: /^Payment, Html 500, …/ }).click();
    await rowsOf(page, "Needs you").waitFor();
    await goTo(page, "Watch");
    const card = page.locator("#calls .card", { hasText: "Needs you" });
    await card.getByText("Given up: look at the payments service, by hand.").waitFor();
    const { calls } = (await (await fetch(`${hasty.adminUrl}/api/calls`)).json()) as Calls;
    assert.deepEqual(
      calls.map(({ needsOperator, nextLookMs }) => [needsOperator, nextLookMs]),
      [[true, undefined]],
    );
    await goTo(page, "Payments");
    await page.getByRole("link", { name: "Needs you", exact: true }).click();
    await page.locator("#list a.row", { hasText: "Needs you" }).waitFor();
  });

  it("counts a forged callback, and keeps one that it cannot read for a replay", async () => {
    await postCallback(gateway, "forged", { password: "wrong" });
    const card = { mask: "411111******1111", token: "tok_of_a_letter" };
    await sendCallback(gateway, { "nobody understands": true, card });
    await using opened = await browser.open(gateway.adminUrl, /status of 422/);
    const { page } = opened;
    const forged = page.locator(".verdicts li", { hasText: "bad signature" });
    await forged.getByText("1").waitFor();
    const letter = page.locator("#letters .card");
    await letter.getByText("is missing").waitFor();
    await letter.getByRole("button", { name: "Show body" }).click();
    const body = JSON.parse(await letter.locator("pre").innerText());
    assert.equal(body.card.token, "[redacted]");
    assert.equal(body.card.mask, "411111******1111");
    await letter.getByRole("button", { name: "Replay" }).click();
    const ask = page.getByRole("dialog");
    await ask.getByRole("button", { name: "Cancel" }).click();
    await ask.waitFor({ state: "detached" });
    assert.equal(await letter.getByText("Still not understood").count(), 0);
    await letter.getByRole("button", { name: "Replay" }).click();
    await ask.getByRole("button", { name: "Replay" }).click();
    await letter.getByText("Still not understood: it stays here.").waitFor();
  });
});
