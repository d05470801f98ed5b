import assert from "node:assert/strict";
import { test } from "node:test";
import WebSocket from "ws";
import { ask } from "../../ask.ts";
import { type Served, serve, somebody } from "../serve.ts";

const shop = "https://shop.example";
const budget = "{ rateLimit { limit } }";

/** Sends a request as a browser does: with headers that `fetch` does not let a script set. */
function send(
  { url }: Served,
  method: string,
  headers: Record<string, string>,
  options: { query?: string; body?: string } = {},
) {
  const { query, ...more } = options;
  const address = query ? `${url}?query=${encodeURIComponent(query)}` : url;
  return ask(address, { method, headers, ...more });
}

/*
 * Which origins are foreign is told in test/net/browser-origin.test.ts, and what the EventSource of a
 * listed origin needs in test/gateway/event-source.test.ts.
 */
test("a GET by a page of a foreign origin is refused before the caller is identified", async (t) => {
  let identified = 0;
  const identify = async () => {
    identified += 1;
    return somebody;
  };
  const gateway = await serve(t, {}, { corsOrigins: [shop], identify });
  for (const headers of [{}, { accept: "text/event-stream" }]) {
    const origin = "https://evil.example";
    const refused = await send(gateway, "GET", { ...headers, origin }, { query: budget });
    assert.equal(refused.status, 403);
    const [error] = JSON.parse(/{.*}/.exec(refused.text)?.[0] ?? "{}").errors;
    const { code, reason } = error.extensions;
    assert.deepEqual([code, reason], ["FORBIDDEN", "FOREIGN_ORIGIN"]);
    assert.equal(refused.headers["access-control-allow-origin"], undefined);
    assert.equal(identified, 0);
  }
  const allowed = await send(gateway, "GET", { origin: shop }, { query: budget });
  assert.deepEqual(JSON.parse(allowed.text), { data: { rateLimit: { limit: 10 } } });
  assert.equal(identified, 1);
});

test("a request that a page can send without a preflight runs no mutation", async (t) => {
  const gateway = await serve(t, {}, { corsOrigins: [shop] });
  const mutation = `mutation { confirmPayment(input: {externalId: "e"}) { __typename } }`;
  const body = JSON.stringify({ query: mutation });
  // A listed origin is refused as well: its scripts can set the right content type.
  for (const headers of [{}, { origin: shop }]) {
    for (const type of [
      "text/plain",
      "text/plain; application/json",
      "text/plain,application/json",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=application/json",
      "application/jsonp",
      "application/graphql",
      undefined,
    ]) {
      const sent = { ...headers, ...(type && { "content-type": type }) };
      const answer = await send(gateway, "POST", sent, { body });
      assert.equal(answer.status, 415, type);
      assert.equal(JSON.parse(answer.text).errors[0].extensions.code, "UNSUPPORTED_MEDIA_TYPE");
    }
    assert.equal((await send(gateway, "GET", headers, { query: mutation })).status, 405);
  }
  assert.deepEqual(gateway.seen(), []);
});

test("sockets of pages of foreign origins are refused, those of listed origins are not", async (t) => {
  const gateway = await serve(t, {}, { corsOrigins: [shop] });
  const open = (origin: string | undefined, headers: Record<string, string> = {}) =>
    new Promise<number>((resolve) => {
      const socket = new WebSocket(gateway.wsUrl, "graphql-transport-ws", {
        ...(origin === undefined ? {} : { origin }),
        headers,
      });
      socket.on("open", () => resolve(101));
      socket.on("unexpected-response", (_, { statusCode }) => resolve(statusCode ?? 0));
      socket.on("error", () => undefined);
      t.after(() => socket.terminate());
    });
  assert.equal(await open(shop), 101);
  assert.equal(await open(undefined), 101);
  assert.equal(await open("https://evil.example"), 403);
  assert.equal(await open("null"), 403);
  assert.equal(await open(undefined, { "sec-fetch-site": "cross-site" }), 403);
});
