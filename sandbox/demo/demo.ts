import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";

/** The demo shop's first page; the others are below it. */
const path = "/demo";

/**
 * Serves a demo shop's checkout, for sandbox mode: pages that pay by GraphQL and watch by
 * `EventSource`, without a backend. They call without credentials, which `AUTH_MODE=none` allows;
 * in a real shop, the backend pays and gives the page a watch token.
 */
export function createDemo() {
  const files = new Map(
    Object.entries(pages).map(([at, [name, type]]) => [
      at,
      { type, body: readFileSync(new URL(`./pages/${name}`, import.meta.url)) },
    ]),
  );
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    request.resume();
    const file = files.get((request.url ?? "").split("?", 1)[0] ?? "");
    if (!file) return answer(response, 404, "text/plain; charset=utf-8", "not found\n");
    if (request.method !== "GET" && request.method !== "HEAD") {
      response.setHeader("allow", "GET, HEAD");
      return answer(response, 405, "text/plain; charset=utf-8", "method not allowed\n");
    }
    return answer(response, 200, file.type, request.method === "HEAD" ? "" : file.body);
  };
  return { path, serve };
}

const html = "text/html; charset=utf-8";
const script = "text/javascript; charset=utf-8";

const pages: Readonly<Record<string, readonly [name: string, type: string]>> = {
  [path]: ["checkout.html", html],
  [`${path}/result`]: ["result.html", html],
  [`${path}/checkout.js`]: ["checkout.js", script],
  [`${path}/result.js`]: ["result.js", script],
  [`${path}/gateway.js`]: ["gateway.js", script],
  [`${path}/order.js`]: ["order.js", script],
  [`${path}/demo.css`]: ["demo.css", "text/css; charset=utf-8"],
};

const headers = {
  "cache-control": "no-store",
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

function answer(
  response: ServerResponse,
  status: number,
  type: string,
  body: string | Uint8Array,
): void {
  response.writeHead(status, { ...headers, "content-type": type });
  response.end(body);
}
