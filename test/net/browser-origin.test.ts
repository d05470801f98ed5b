import assert from "node:assert/strict";
import { test } from "node:test";
import { isCrossOrigin } from "../../src/net/browser-origin.ts";

const shop = "https://shop.example";
const host = "gateway.example";

const rows: readonly (readonly [origin: string | undefined, site: string | undefined, boolean])[] =
  [
    // fetch(), and an EventSource of an old browser.
    ["https://evil.example", "cross-site", true],
    ["https://evil.example", undefined, true],
    // A page without an origin of its own, and an origin that begins like a listed one.
    ["null", undefined, true],
    [`${shop}.evil.example`, undefined, true],
    // An image on another site, and a script on a sibling domain.
    [undefined, "cross-site", true],
    [undefined, "same-site", true],
    [shop, "cross-site", false],
    [undefined, "same-origin", false],
    // Behind a proxy that sets another Host.
    ["https://outside.example", "same-origin", false],
    [`http://${host}`, undefined, false],
    [undefined, "none", false],
    // Clients that are no browsers.
    [undefined, undefined, false],
  ];

for (const [origin, secFetchSite, expected] of rows) {
  test(`${origin ?? "no origin"} (${secFetchSite}) is ${expected ? "" : "not "}cross-origin`, () => {
    assert.equal(isCrossOrigin({ origin, host, "sec-fetch-site": secFetchSite }, [shop]), expected);
  });
}

test("a request with an origin but without Host is cross-origin", () => {
  assert.equal(isCrossOrigin({ origin: "null" }, []), true);
});
