import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { isDeepStrictEqual } from "node:util";
import type { Page } from "playwright-core";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { deriveKeyring } from "../../src/secrets/keyring.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { withoutChromium } from "../chromium.ts";
import { startCuttingProxy } from "../cutting-proxy.ts";
import { paymentTold, postCallback, sendCallback } from "../gateway/callers.ts";
import { replica } from "../ledger/redis/rig.ts";
import { closing, ofSuite } from "../of-suite.ts";
import { type RedisServer, startRedis, withoutRedis } from "../redis/server.ts";
import { startTestGateway } from "../start.ts";
import { until } from "../until.ts";
import { browserForTests, live, rowsOf } from "./chromium.ts";

const hash = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 32);
/** A callback whose payment_id does not contain the external_id that the page is searched for. */
const told = (externalId: string, status?: string) => {
  const { details, ...rest } = paymentTold(externalId, status);
  return { ...rest, details: { ...details, payment_id: hash(externalId) } };
};

describe("the console's stream of events", { skip: withoutChromium }, () => {
  const browser = browserForTests();
  const gateway = ofSuite(startTestGateway);

  const idsOf = (page: Page) => page.locator("#events .row strong").allInnerTexts();
  /** Waits, since the page draws events some time after it receives them. */
  const shows = async (page: Page, expected: readonly string[]) => {
    const shown = async () => isDeepStrictEqual(await idsOf(page), expected);
    await until(shown).catch(async () => assert.deepEqual(await idsOf(page), expected));
  };
  const send = (externalId: string, status = "success") =>
    sendCallback(gateway, told(externalId, status));

  it("shows every event once after a network cut, and shows the cut meanwhile", async (t) => {
    const link = closing(t, await startCuttingProxy(gateway.adminUrl));
    await using opened = await browser.open(link.url, /Failed to load resource: net::ERR/);
    const { page } = opened;
    await live(page);
    await send("before-the-cut");
    await rowsOf(page, "before-the-cut").waitFor();
    link.cut();
    await page.getByText("Reconnecting").waitFor();
    await page.getByText("Not up to date").first().waitFor();
    // Nothing is known of the service while the gateway cannot be asked: nothing is green.
    await page.locator("#upstream .chip").getByText("not known now").waitFor();
    assert.equal(await page.locator(".chip.good, .pill.live").count(), 0);
    const during = Array.from({ length: 20 }, (_, n) => `during-the-cut-${n}`);
    for (const externalId of during) await send(externalId);
    assert.deepEqual(await idsOf(page), ["before-the-cut"], "what was known stays");
    link.mend();
    await live(page);
    await rowsOf(page, "during-the-cut-19").waitFor();
    await send("after-the-cut");
    await rowsOf(page, "after-the-cut").waitFor();
    const expected = ["before-the-cut", ...during, "after-the-cut"].reverse();
    await shows(page, expected);
    await page.getByText("Not up to date").first().waitFor({ state: "detached" });
  });

  it("starts anew with a gateway that has lost its log, and shows that", async (t) => {
    const first = await startTestGateway();
    await using opened = await browser.open(first.adminUrl, /Failed to load resource: net::ERR/);
    const { page } = opened;
    await sendCallback(first, told("of-a-log-that-is-lost"));
    await rowsOf(page, "of-a-log-that-is-lost").waitFor();
    await first.stop();
    const next = closing(t, await startTestGateway({ ADMIN_ADDR: new URL(first.adminUrl).host }));
    await page.getByText("The log was interrupted").waitFor();
    await sendCallback(next, told("of-the-new-log"));
    await rowsOf(page, "of-the-new-log").waitFor();
    assert.equal(await rowsOf(page, "of-a-log-that-is-lost").count(), 0);
  });

  it("leaves a search that is under way without an error of the page", async () => {
    await using opened = await browser.open(`${gateway.adminUrl}/#/default/payments`);
    const { page } = opened;
    const asked = new Set<string>();
    await page.route(/\/(graphql|api\/history\?)/, (route) => {
      asked.add(new URL(route.request().url()).pathname);
    });
    await page.getByLabel("External id or payment id").fill("left");
    await page.keyboard.press("Enter");
    await until(async () => asked.size === 2);
    await page.getByRole("link", { name: "Paid", exact: true }).click();
    await page.waitForURL(/state=paid/);
  });

  it("lists payments by state, and finds them by either id", async () => {
    await send("filter-one");
    await send("filter-two", "failure");
    await using opened = await browser.open(`${gateway.adminUrl}/#/default/payments?state=failed`);
    const { page } = opened;
    const listed = page.locator("#list a.row");
    const shown = async (expected: readonly string[]) => {
      const ids = () => page.locator("#list .row strong").allInnerTexts();
      await until(async () => isDeepStrictEqual(await ids(), expected));
    };
    await shown(["filter-two"]);
    await page.getByRole("link", { name: "Paid", exact: true }).click();
    await listed.getByText("filter-one").waitFor();
    assert.equal(await listed.getByText("filter-two").count(), 0);
    await page.getByRole("link", { name: "All", exact: true }).click();
    // The other list has a field of its own.
    await listed.getByText("filter-two").waitFor();
    const search = async (text: string) => {
      await page.getByLabel("External id or payment id").fill(text);
      await page.keyboard.press("Enter");
    };
    await search("FILTER-");
    await shown(["filter-two", "filter-one"]);
    const paymentId = hash("filter-one");
    await search(paymentId);
    await shown(["filter-one"]);
    await page.reload();
    await shown(["filter-one"]);
    await listed.getByText(paymentId).waitFor();
    await page.getByRole("navigation", { name: "By state" }).getByText("Failed").click();
    await page.getByText("No payments like that are known here.").waitFor();
    await page.getByRole("link", { name: "All", exact: true }).click();
    await search("filter-two");
    await shown(["filter-two"]);
    await listed.click();
    await page.getByRole("heading", { name: "filter-two" }).waitFor();
    await page.getByText("Nothing more: no money moved.").waitFor();
    await page.goto(`${gateway.adminUrl}/#/default/payouts/none-at-all`);
    await page.getByText("Nothing is kept of this payout.").waitFor();
  });

  it("lists every payment once while others are heard of, also older ones as they are now", async (t) => {
    const gateway = closing(t, await startTestGateway());
    const names = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, n) => `listed-${from + n}`);
    for (const name of names(0, 60)) await sendCallback(gateway, told(name, "pending"));
    await using opened = await browser.open(`${gateway.adminUrl}/#/default/payments`);
    const { page } = opened;
    const ids = () => page.locator("#list .row strong").allInnerTexts();
    const shown = async (expected: readonly string[]) =>
      until(async () => isDeepStrictEqual(await ids(), expected));
    await shown(names(10, 60).reverse());
    await page.getByRole("button", { name: "Show more" }).click();
    await shown(names(0, 60).reverse());
    for (const name of names(60, 65)) await sendCallback(gateway, told(name));
    await sendCallback(gateway, told("listed-0"));
    await shown(names(0, 65).reverse());
    await page.locator("#list .row").last().getByText("Paid").waitFor();
  });

  it("shows a state that only a newer release knows", async () => {
    await send("of-a-newer-release");
    await using opened = await browser.open(gateway.adminUrl);
    const { page } = opened;
    await page.route(/\/graphql$/, async (route) => {
      if (!route.request().postData()?.includes("query List")) return route.fallback();
      const response = await route.fetch();
      const body = (await response.text()).replaceAll(/"state":"\w+"/g, '"state":"CHARGED_BACK"');
      await route.fulfill({ response, body });
    });
    await page.getByRole("navigation", { name: "Pages" }).getByText("Payments").click();
    await page.locator("#list .row").first().getByText("Charged back").waitFor();
  });

  it("holds its list of events on request, and then catches up", async () => {
    await using opened = await browser.open(gateway.adminUrl);
    const { page } = opened;
    await rowsOf(page, "filter-two").waitFor();
    await page.getByRole("button", { name: "Hold" }).click();
    await page.getByRole("button", { name: "Go on" }).waitFor();
    const held = await idsOf(page);
    await send("while-held");
    await page.getByRole("button", { name: "Go on (1 new)" }).waitFor();
    assert.deepEqual(await idsOf(page), held);
    await page.getByRole("button", { name: "Go on (1 new)" }).click();
    await rowsOf(page, "while-held").waitFor();
  });

  it("keeps a bounded number of events, however many arrive", async () => {
    await using opened = await browser.open(gateway.adminUrl);
    const { page } = opened;
    await live(page);
    for (let batch = 0; batch < 12; batch++) {
      await Promise.all(Array.from({ length: 50 }, (_, n) => send(`many-${batch}-${n}`)));
    }
    await send("the-last");
    await rowsOf(page, "the-last").waitFor();
    await page.getByText("500 events; the page keeps the newest 500").waitFor();
    const counts = (count: number) =>
      until(async () => (await page.locator("#events .row").count()) === count);
    await counts(30);
    await page.getByRole("button", { name: "Show more" }).click();
    await counts(60);
  });

  it("can be used by keyboard alone", async () => {
    await using opened = await browser.open(gateway.adminUrl);
    const { page } = opened;
    await live(page);
    // The newest event: no other row comes before it.
    await rowsOf(page, "the-last").waitFor();
    /** Waits, since the page draws some time after the key press. */
    const focusIsOn = (text = "?") =>
      page.waitForFunction(
        (wanted) =>
          document.activeElement !== document.body &&
          document.activeElement?.textContent?.includes(wanted) === true,
        text,
      );
    await page.keyboard.press("Tab");
    await focusIsOn("Skip to the content");
    await page.keyboard.press("Enter");
    /** Presses Tab until the focus is on an element with this text. */
    const tabTo = async (text: string) => {
      for (let presses = 0; presses < 20; presses++) {
        await page.keyboard.press("Tab");
        const focused = await page.evaluate(() => document.activeElement?.textContent ?? "");
        if (focused.startsWith(text)) return;
      }
      assert.fail(`the Tab key does not reach ${text}`);
    };
    await tabTo("Hold");
    await page.keyboard.press("Tab");
    const [first, second] = await idsOf(page);
    await focusIsOn(first);
    await page.keyboard.press("ArrowDown");
    await focusIsOn(second);
    await page.keyboard.press("End");
    await focusIsOn((await idsOf(page)).at(-1));
    await page.keyboard.press("Home");
    await focusIsOn(first);
    await page.keyboard.press("ArrowDown");
    await focusIsOn(second);
    // All rows are one tab stop: the row with the focus, once the page has drawn it.
    await page.waitForFunction(
      () =>
        document.querySelectorAll('#events a.row[tabindex="0"]').length === 1 &&
        document.activeElement?.getAttribute("tabindex") === "0",
    );
    await page.keyboard.press("Tab");
    await focusIsOn("Show more");
    await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: second ?? "?" }).waitFor();
    await page.getByRole("button", { name: "Ask for the callback again" }).waitFor();
    await tabTo("Ask for the callback again");
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Ask for the callback again?" });
    await dialog.waitFor();
    await page.keyboard.press("Escape");
    // By its tag: a closed dialog has no role any more, but is there until the page hears of it.
    await page.locator("dialog").waitFor({ state: "detached" });
    await focusIsOn("Ask for the callback again");
    // The focus stays where it went as the dialog closed, though the page removes the dialog later.
    await page.keyboard.press("Enter");
    await dialog.waitFor();
    await dialog.evaluate((element: HTMLDialogElement) => {
      element.close();
      document.querySelector<HTMLElement>("#subject .above a")?.focus();
    });
    await page.locator("dialog").waitFor({ state: "detached" });
    assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Payments");
    await page.keyboard.press("Enter");
    await page.locator("#list a.row").first().waitFor();
    await tabTo("Search");
  });
});

describe("the console on Redis", { skip: withoutChromium || withoutRedis }, () => {
  const browser = browserForTests();
  const prefix = `console-${randomUUID()}`;
  let redis: RedisServer;
  before(async () => {
    redis = await startRedis();
  });
  const gateway = ofSuite(() => startTestGateway({ REDIS_URL: redis.url, REDIS_PREFIX: prefix }));
  after(() => redis.close());

  /** Stores dead letters as a much older release would have stored them. */
  async function addDeadLetter(bodies: readonly string[], name: string): Promise<void> {
    const keyring = await deriveKeyring("default", [new Secret("sandbox-password")]);
    const { log, close } = await replica(redis.url, { prefix, keyringOf: () => keyring });
    for (const [at, body] of bodies.entries()) {
      await log.letters.addDeadLetter("default", {
        id: `${name}-${at}`,
        kind: EventKind.PAYMENT,
        body: Buffer.from(body).toString("base64"),
        reason: "a release of long ago did not know it",
        receivedAtMs: Date.now() + at,
      });
    }
    await close();
  }

  it("replays dead letters: those that are understood now become events", async () => {
    const details = { payment_id: randomUUID(), status: "success", amount: 5, currency: "UAH" };
    const bodies = [
      JSON.stringify({ external_id: "from-a-letter", operation: "payment", details }),
      '{"still": "not understood", "token": "tok_secret", "broken": ',
    ];
    await addDeadLetter(bodies, "letter");
    await using opened = await browser.open(gateway.adminUrl, /status of 422/);
    const { page } = opened;
    const letters = page.locator("#letters");
    await letters.locator(".card").nth(1).waitFor();
    await letters.getByRole("button", { name: "Show body" }).first().click();
    assert.match(await letters.locator("pre").innerText(), /^\[\d+ characters that are not JSON/);
    await letters.getByRole("button", { name: "Replay all" }).click();
    const ask = page.getByRole("dialog", { name: "Replay these 2 callbacks?" });
    await ask.getByRole("button", { name: "Replay" }).click();
    await letters.getByText("2 callbacks replayed, 1 understood now.").waitFor();
    await rowsOf(page, "from-a-letter").getByText("Paid").waitFor();
    await letters.locator(".card").nth(1).waitFor({ state: "detached" });
    await letters.locator(".card").getByText("Still not understood").waitFor();
    await page.locator("#budget").getByText("shared").waitFor();
  });

  it("discards a dead letter after a confirmation, and lists older ones page by page", async () => {
    const many = 60;
    await addDeadLetter(
      Array.from({ length: many }, (_, at) => `{"nobody": ${at}}`),
      "hopeless",
    );
    await using opened = await browser.open(gateway.adminUrl);
    const { page } = opened;
    const letters = page.locator("#letters");
    const cards = letters.locator(".card");
    await letters.getByRole("button", { name: "Show all 50" }).click();
    await letters.getByText(/^The newest 50 of \d+\.$/).waitFor();
    await until(async () => (await cards.count()) === 50);
    await letters.getByRole("button", { name: "Load older" }).click();
    await cards.nth(many - 1).waitFor();
    await letters.getByText("The newest").waitFor({ state: "detached" });

    // Those that come meanwhile push none out of the list.
    await addDeadLetter(['{"nobody": "late"}', '{"nobody": "later"}'], "late");
    const before = many + 1 + 2;
    await until(async () => (await cards.count()) === before);

    const first = cards.first();
    const ask = page.getByRole("dialog", { name: "Discard this callback?" });
    await first.getByRole("button", { name: "Discard" }).click();
    await ask.getByRole("button", { name: "Cancel" }).click();
    await ask.waitFor({ state: "detached" });
    assert.equal(await cards.count(), before);
    for (const left of [before - 1, before - 2]) {
      // First the newest letter, then one of an older page.
      const card = left === before - 1 ? first : cards.last();
      await card.getByRole("button", { name: "Discard" }).click();
      await ask.getByRole("button", { name: "Discard" }).click();
      await letters.getByText("It was discarded.").first().waitFor();
      await cards.nth(left).waitFor({ state: "detached" });
      assert.equal(await cards.count(), left);
    }
    const { total } = (await (await fetch(`${gateway.adminUrl}/dead-letters`)).json()) as {
      total: number;
    };
    assert.equal(total, before - 2);
  });

  it("shows that the store is out of reach, and goes on when it is back", async () => {
    await using opened = await browser.open(gateway.adminUrl, /status of 503/);
    const { page } = opened;
    await live(page);
    redis.pause();
    await page
      .locator("#calls .problem")
      .getByText(/store is out of reach/i)
      .waitFor();
    await page.locator("#budget").getByText("on its own share").waitFor();
    redis.resume();
    await page.locator("#calls .problem").waitFor({ state: "detached" });
    await page.locator("#budget").getByText("shared").waitFor();
    await until(async () => {
      const { status } = await postCallback(gateway, told("after-the-outage"));
      return status === 200;
    });
    await rowsOf(page, "after-the-outage").first().waitFor();
  });
});
