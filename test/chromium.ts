import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

const executablePath = "/usr/bin/chromium";

/** Why tests cannot run here, for `skip`. In CI they never skip: without a browser they fail. */
export const withoutChromium: string | false =
  process.env.CI || existsSync(executablePath) ? false : "needs chromium: apt-get install chromium";

/** Debian's Chromium without a window, which asks nobody but the pages under test. */
export function launchChromium(): Promise<Browser> {
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
    ],
  });
}
