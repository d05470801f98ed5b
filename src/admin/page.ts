import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";

/** The console: one self-contained HTML document, and headers that forbid it to load others. */
export interface Page {
  readonly html: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Where `scripts/build-console.ts` puts the page. */
const pageFile = new URL("./console.gen.html", import.meta.url);

/** Reads the built page; undefined when it was not built. */
export function loadPage(file: URL = pageFile): Page | undefined {
  if (!existsSync(file)) return undefined;
  const html = readFileSync(file, "utf8");
  return {
    html,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": policyOf(html),
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-resource-policy": "same-origin",
      "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    },
  };
}

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
