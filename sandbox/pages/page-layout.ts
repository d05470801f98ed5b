import { createHash } from "node:crypto";
import type { HttpResponse } from "../api/http.ts";
import { Html, html } from "./html.ts";

export interface Page {
  readonly title: string;
  readonly body: Html;
  /** Default: as the browser prefers. */
  readonly colorMode?: "white" | "dark" | undefined;
  readonly wide?: boolean;
  readonly status?: number;
}

/** A whole page, without scripts and external assets. It must not be cached. */
export function pageAnswer({ title, body, colorMode, wide, status = 200 }: Page): HttpResponse {
  const page = html`<!doctype html>
<html lang="en" class="${colorMode}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Payments sandbox</title>
<style>${styleMarkup}</style>
</head>
<body>
<main class="${wide ? "wide" : undefined}">
${body}
<footer>Payments sandbox · no real money moves here · <a href="/">all payments</a></footer>
</main>
</body>
</html>
`;
  return { status, headers: pageHeaders, body: page.text };
}

/** Redirects the browser, which then uses GET. */
export function redirect(location: string): HttpResponse {
  return { status: 303, headers: { ...pageHeaders, Location: location }, body: "" };
}

const style = `
:root {
  color-scheme: light dark;
  --back: light-dark(#f2f4f7, #11151b); --card: light-dark(#fff, #1b222c);
  --text: light-dark(#1b2430, #e8edf3); --soft: light-dark(#5a6675, #a3b0bf);
  --line: light-dark(#d5dbe3, #38434f); --main: light-dark(#1f5fd0, #7fb0ff);
  --on-main: light-dark(#fff, #0b1730); --good: light-dark(#176b3a, #6fd69b);
  --bad: light-dark(#b3261e, #ff9d94); --wait: light-dark(#7a5200, #f0c36d);
}
:root.white { color-scheme: light; }
:root.dark { color-scheme: dark; }
* { box-sizing: border-box; }
body {
  margin: 0; padding: 2rem 1rem; background: var(--back); color: var(--text);
  font: 1rem/1.5 system-ui, sans-serif;
}
main {
  max-width: 28rem; margin: 0 auto; padding: 1.75rem; background: var(--card);
  border: 1px solid var(--line); border-radius: 12px;
}
main.wide { max-width: 64rem; }
h1, h2 { margin: 0 0 .5rem; font-size: 1.35rem; line-height: 1.3; }
h2 { margin-top: 2rem; }
p { margin: 0 0 1rem; }
.amount { font-size: 1.9rem; font-weight: 650; margin-bottom: 1rem; }
.soft { color: var(--soft); }
.success { color: var(--good); } .failure { color: var(--bad); } .init, .pending { color: var(--wait); }
dl { display: grid; grid-template-columns: auto 1fr; gap: .25rem 1rem; margin: 0 0 1.25rem; }
dt { color: var(--soft); } dd { margin: 0; text-align: right; overflow-wrap: anywhere; }
form { display: grid; gap: .9rem; }
.row { display: grid; grid-template-columns: 1fr 1fr; gap: .9rem; }
label { display: grid; gap: .25rem; color: var(--soft); font-size: .9rem; }
input {
  width: 100%; padding: .6rem .7rem; font: inherit; font-variant-numeric: tabular-nums;
  color: var(--text); background: var(--back); border: 1px solid var(--line); border-radius: 8px;
}
button {
  padding: .7rem 1rem; font: inherit; font-weight: 600; border-radius: 8px; cursor: pointer;
  border: 1px solid var(--main); background: var(--main); color: var(--on-main);
}
button.second { background: transparent; color: var(--text); border-color: var(--line); }
:focus-visible { outline: 3px solid var(--main); outline-offset: 2px; }
a { color: var(--main); }
table { width: 100%; border-collapse: collapse; font-size: .92rem; }
th, td { padding: .5rem .6rem; text-align: left; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 500; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.wrap { min-width: 9rem; overflow-wrap: anywhere; }
@media (max-width: 44rem) {
  thead { position: absolute; clip-path: inset(50%); }
  tr { display: flex; flex-wrap: wrap; gap: 0 1rem; padding: .5rem 0; border-bottom: 1px solid var(--line); }
  td { padding: 0; border: 0; }
  td.wrap { flex: 1 0 100%; font-weight: 600; }
}
footer { margin-top: 1.5rem; padding-top: 1rem; border-top: 1px solid var(--line);
  color: var(--soft); font-size: .85rem; }
footer a { white-space: nowrap; }
`;

/** Constant CSS, which escaping would break. */
const styleMarkup = new Html(style);

const styleHash = createHash("sha256").update(style).digest("base64");

const pageHeaders = {
  "Content-Type": "text/html; charset=utf-8",
  "Cache-Control": "no-store",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
  "Content-Security-Policy": `default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'`,
};
