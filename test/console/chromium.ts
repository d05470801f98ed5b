import assert from "node:assert/strict";
import { before } from "node:test";
import type { Page } from "playwright-core";
import { magicValues } from "../../sandbox/ledger/scenarios.ts";
import { buildConsole } from "../../scripts/build-console.ts";
import { newContext, withoutChromium } from "../chromium.ts";

/** The console in a browser, with a page that is built from the current sources. */
export function browserForTests() {
  before(async () => {
    if (!withoutChromium) await buildConsole();
  });

  return {
    /**
     * Opens the console, until the test ends. Asserts then that it shows no card number, that it sent
     * requests only to the console's listener, and that each error and warning in the browser's
     * console, and each uncaught error of the page, matches `expected`.
     */
    async open(adminUrl: string, expected?: RegExp) {
      const context = await newContext({ viewport: { width: 1280, height: 900 } });
      const page = await context.newPage();
      const foreignRequests: string[] = [];
      const complaints: string[] = [];
      const { origin } = new URL(adminUrl);
      page.on("request", (request) => {
        const url = request.url();
        if (!url.startsWith(`${origin}/`) && !url.startsWith("data:")) foreignRequests.push(url);
      });
      page.on("pageerror", ({ message }) => complaints.push(message));
      page.on("console", (message) => {
        if (message.type() === "error" || message.type() === "warning") {
          complaints.push(message.text());
        }
      });
      await page.goto(adminUrl);
      return {
        page,
        async [Symbol.asyncDispose]() {
          const shown = await page.content();
          for (const number of cardNumbers) {
            const isShown = shown.replace(/(\d)[ -](?=\d)/g, "$1").includes(number);
            assert.ok(!isShown, "a card number shows");
          }
          await context.close();
          assert.deepEqual(foreignRequests, []);
          assert.deepEqual(
            complaints.filter((complaint) => !expected?.test(complaint)),
            [],
          );
        },
      };
    },
  };
}

const cardNumbers = [...magicValues.flatMap(({ cards }) => cards), "4242424242424242"];

/** Rows of the list of events that have this text. */
export function rowsOf(page: Page, text: string | RegExp) {
  return page.locator("#events a.row", { hasText: text });
}

/** Goes to another page of the console by the link in its header. */
export async function goTo(page: Page, name: "Watch" | "Payments" | "Payouts" | "Try it") {
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name }).click();
}

/** Waits until the page shows that it is live. */
export async function live(page: Page): Promise<void> {
  await page.getByText("Live", { exact: true }).waitFor();
}
