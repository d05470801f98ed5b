import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import type { AdminAnswer } from "./operator.ts";

/** Where `scripts/build-console.ts` puts the page. */
const pageFile = new URL("./console.gen.html", import.meta.url);

/**
 * The console: one self-contained HTML document, and headers that forbid it to load others. A hint
 * in its place if it was not built.
 */
export function loadPage(file: URL = pageFile): AdminAnswer {
  if (!existsSync(file)) return { status: 404, body: notBuilt };
  const html = readFileSync(file, "utf8");
  return {
    status: 200,
    body: html,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": policyOf(html),
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-resource-policy": "same-origin",
      "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    },
  };
}

const notBuilt =
  "The console's page was not built. Run `npm run build:console` in the gateway's directory, and " +
  "start the gateway again.\n\nAlso here: /healthz, /readyz, /metrics, /dead-letters\n";

/** Allows only the page's own scripts and styles, and requests to this listener only. */
function policyOf(html: string): string {
  return [
    "default-src 'none'",
    `script-src ${hashesOf(html, "script")}`,
    `style-src ${hashesOf(html, "style")}`,
    "img-src data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
}

function hashesOf(html: string, element: "script" | "style"): string {
  const all = [...html.matchAll(new RegExp(`<${element}[^>]*>([^]*?)</${element}>`, "g"))];
  return all
    .map(([, text = ""]) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`)
    .join(" ");
}
