import { existsSync } from "node:fs";
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

/** Why tests cannot run here, for `skip`. In CI they never skip: without a browser they fail. */
export const withoutChromium: string | false =
  process.env.CI || existsSync(executablePath) ? false : "needs chromium: apt-get install chromium";

/** One for all tests of this process, from the first that needs it until the last is over. */
let launched: Promise<Browser> | undefined;
after(async () => (await launched)?.close());

/** A context of its own, which whoever asks for it closes. */
export async function newContext(options: BrowserContextOptions = {}): Promise<BrowserContext> {
  launched ??= launch();
  const context = await (await launched).newContext(options);
  context.setDefaultTimeout(timeoutMs);
  return context;
}

/** A page in a context of its own, until the test is over. */
export async function newPage(t: TestContext, options: BrowserContextOptions = {}): Promise<Page> {
  const context = await newContext(options);
  t.after(() => context.close());
  return context.newPage();
}

/**
 * What pages under test need nothing of. The browser's own pages behind the address bar, loaded anew for
 * each context, take more processor time than the pages under test, and a process kept in reserve is
 * started for nothing. The others are those that Playwright names, since the last such switch wins.
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

/** Debian's Chromium without a window, which asks nobody but the pages under test. */
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
