import { existsSync, readFileSync } from "node:fs";
import { after, type TestContext } from "node:test";
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from "playwright-core";
import { timeoutMs } from "./until.ts";

const executablePath = "/usr/bin/chromium";

/** The reason to `skip` if Chromium is missing. In CI tests fail without it instead. */
export const withoutChromium: string | false =
  process.env.CI || existsSync(executablePath) ? false : "needs chromium: apt-get install chromium";

/** One browser for all tests of this process, launched by the first test that needs it. */
let launched: Promise<Browser> | undefined;
after(async () => (await launched)?.close());

/** Opens a new browser context. The caller closes it. */
export async function newContext(options: BrowserContextOptions = {}): Promise<BrowserContext> {
  launched ??= launch();
  const context = await (await launched).newContext(options);
  context.setDefaultTimeout(timeoutMs);
  return context;
}

/** Opens a page in a new browser context, which is closed after the test. */
export async function newPage(t: TestContext, options: BrowserContextOptions = {}): Promise<Page> {
  const context = await newContext(options);
  t.after(() => context.close());
  return context.newPage();
}

/** Those of axe's rules that look at colours. */
const colorRules = ["color-contrast", "link-in-text-block"];
const axeFile = new URL("../node_modules/axe-core/axe.min.js", import.meta.url);

/**
 * What axe finds wrong with a page in light and in dark colours, one line for each rule that it
 * breaks. In dark ones it looks at colours alone: all else is the same.
 */
export async function axeViolations(page: Page, colorScheme: "light" | "dark"): Promise<string[]> {
  const isThere = await page.evaluate(() => "axe" in globalThis);
  // As text, since the page's policy allows no other script.
  if (!isThere) await page.evaluate(readFileSync(axeFile, "utf8"));
  return page.evaluate(
    async (rules) => {
      const { axe } = globalThis as unknown as { axe: Axe };
      const { violations } = await axe.run(rules);
      return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
    },
    colorScheme === "dark" ? { runOnly: { type: "rule", values: colorRules } } : {},
  );
}

interface Axe {
  run(rules: object): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }>;
}

/**
 * Features that tests do not need. The browser's own pages behind the address bar are loaded for
 * each context and take more processor time than the pages under test; a spare renderer process is
 * never used. The other names are Playwright's: the last switch wins, so it has to repeat them.
 */
const disabledFeatures = [
  "PreloadTopChromeWebUI",
  "WebUIOmniboxPopup",
  "WebUIOmniboxAimPopup",
  "WebUIOmniboxFullPopup",
  "SpareRendererForSitePerProcess",
  "AimEnabled",
  "AvoidCorsURLLoaderRestartOnRedirect",
  "AvoidUnnecessaryBeforeUnloadCheckSync",
  "BlockOriginHeaderModificationOnRedirect",
  "DestroyProfileOnBrowserClose",
  "DialMediaRouteProvider",
  "GlobalMediaControls",
  "HttpsUpgrades",
  "LensOverlay",
  "MediaRouter",
  "NetworkTimeServiceQuerying",
  "OptimizationHints",
  "PaintHolding",
  "ThirdPartyStoragePartitioning",
  "Translate",
];

/** Launches Debian's Chromium, headless and without network traffic of its own. */
function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      `--disable-features=${disabledFeatures.join(",")}`,
    ],
  });
}
