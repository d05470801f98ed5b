import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Page } from "playwright-core";
import { axeViolations, withoutChromium } from "../chromium.ts";
import { sendCallback } from "../gateway/callers.ts";
import { ofSuite } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { timeoutMs } from "../until.ts";
import { browserForTests, goTo, live, rowsOf } from "./chromium.ts";

describe("the console's appearance", { skip: withoutChromium }, () => {
  const browser = browserForTests();
  const gateway = ofSuite(() => startTestGateway({ RECONCILE_AFTER: "60s" }));

  it("fits wide and narrow screens, has enough contrast and passes axe, light and dark", async () => {
    await using opened = await browser.open(`${gateway.adminUrl}/#/default/try`);
    const { page } = opened;
    await live(page);
    for (const name of ["Pay", "Pay with 3DS", "Decline", "Lose answer"]) {
      await page.getByRole("button", { name, exact: true }).click();
    }
    await sendCallback(gateway, '{"nobody": "understands"}');
    await page.getByText("All magic values").click();
    await rowsOf(page, "Failed").first().waitFor();
    const look = async () => {
      for (const width of [1280, 700, 375]) {
        await page.setViewportSize({ width, height: 900 });
        await fits(page);
        assert.deepEqual(await page.evaluate(overflowing), [], `${width}`);
        for (const colorScheme of ["light", "dark"] as const) {
          await page.emulateMedia({ colorScheme });
          await page.evaluate(laidOut);
          const found = width === 700 ? [] : await axeViolations(page, colorScheme);
          assert.deepEqual(found, [], `${width} ${colorScheme}`);
        }
      }
    };
    await look();
    await goTo(page, "Watch");
    await page.locator("#calls .card").first().waitFor();
    await page.locator("#letters .card").first().waitFor();
    await page.getByText("By caller").click();
    await look();
    await goTo(page, "Payouts");
    await page.getByText("No payouts like that are known here.").waitFor();
    await goTo(page, "Payments");
    await page.locator("#list a.row").nth(3).waitFor();
    await look();
    await page.locator("#list a.row", { hasText: "Outcome unknown" }).first().click();
    await page.locator("#open-calls .card").waitFor();
    await look();
    await page.getByRole("button", { name: "Ask for the callback again" }).click();
    await page.getByRole("dialog").waitFor();
    await look();
    await page.keyboard.press("Escape");
    await page.goBack();
    await page.locator("#list a.row", { hasText: "Failed" }).first().click();
    await page.locator("#history summary").first().click();
    await page.locator("#history pre").first().waitFor();
    await look();
    // The control: an element that is too wide and too pale is found.
    await goTo(page, "Watch");
    await page.locator("#calls .card").first().waitFor();
    await page.evaluate(() => {
      const heading = document.querySelector<HTMLElement>("h1");
      if (!heading) return;
      heading.style.width = "200vw";
      heading.style.color = "rgb(170, 170, 170)";
    });
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.emulateMedia({ colorScheme: "light" });
    assert.notDeepEqual(await page.evaluate(overflowing), []);
    const [pale = ""] = await axeViolations(page, "light");
    assert.match(pale, /^color-contrast: /);
  });
});

/** Waits until the page fits its new width, or for the time-out: the asserts then report it. */
async function fits(page: Page): Promise<void> {
  const endMs = performance.now() + timeoutMs;
  do await page.evaluate(laidOut);
  while ((await page.evaluate(overflowing)).length > 0 && performance.now() < endMs);
}

/** In the page: waits until it is redrawn. */
function laidOut(): Promise<void> {
  return new Promise((resolve) => {
    requestAnimationFrame(() => requestAnimationFrame(() => resolve()));
  });
}

/** In the page: elements that reach beyond its right edge and are in no scrolling element. */
function overflowing(): string[] {
  const isScrolled = (element: Element | null): boolean =>
    element !== null &&
    (getComputedStyle(element).overflowX !== "visible" || isScrolled(element.parentElement));
  return [...document.body.querySelectorAll("*")]
    .filter((element) => element.getBoundingClientRect().right > innerWidth + 1)
    .filter((element) => !isScrolled(element.parentElement))
    .map((element) => `${element.tagName}.${element.className}`);
}
