import assert from "node:assert/strict";
import { before } from "node:test";
import type { BrowserContextOptions, Page } from "playwright-core";
import { buildConsole } from "../../scripts/build-console.ts";
import { magicValues } from "../../src/sandbox/ledger/scenarios.ts";
import { newContext, withoutChromium } from "../chromium.ts";

/** A page of the console, and what went wrong in it. */
export interface Opened {
  readonly page: Page;
  /** Requests to others than the console's own listener, and what the browser complained about. */
  readonly foreignRequests: string[];
  readonly complaints: string[];
}

/** The console in a browser, with the page as its sources are now. */
export function browserForTests(): {
  /** Opens the console. It is closed, and held to its promises, with `close`. */
  open(adminUrl: string, options?: BrowserContextOptions): Promise<Opened>;
  /**
   * Closes a page after it was checked that it asked nobody else, shows no card number, and that the
   * browser had nothing to complain about but what was expected.
   */
  close(opened: Opened, expected?: RegExp): Promise<void>;
} {
  before(async () => {
    if (!withoutChromium) await buildConsole();
  });

  return {
    async open(adminUrl, options = {}) {
      const context = await newContext({ viewport: { width: 1280, height: 900 }, ...options });
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
      return { page, foreignRequests, complaints };
    },
    async close({ page, foreignRequests, complaints }, expected) {
      const shown = await page.content();
      for (const number of cardNumbers) {
        assert.ok(!shown.replace(/(\d)[ -](?=\d)/g, "$1").includes(number), "a card number shows");
      }
      await page.context().close();
      assert.deepEqual(foreignRequests, []);
      assert.deepEqual(
        complaints.filter((complaint) => !expected?.test(complaint)),
        [],
      );
    },
  };
}

const cardNumbers = [...magicValues.flatMap(({ cards }) => cards), "4242424242424242"];

/** A row of the list of events. */
export function rowsOf(page: Page, text: string | RegExp) {
  return page.locator("#events button.row", { hasText: text });
}

/** Waits until the page says that it is live. */
export async function live(page: Page): Promise<void> {
  await page.getByText("Live", { exact: true }).waitFor();
}
