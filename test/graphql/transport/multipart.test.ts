import assert from "node:assert/strict";
import { test } from "node:test";
import { createFeed } from "../feed.ts";
import { subscribeInParts } from "../parts.ts";
import { serve } from "../serve.ts";

const query = `subscription { paymentUpdated(externalId: "order-1") { cursor final } }`;

test("a subscription that opens no stream is answered as JSON", async (t) => {
  const gateway = await serve(t);
  const response = await subscribeInParts(gateway, "subscription { nonsense }");
  assert.match(response.headers.get("content-type") ?? "", /^application\/json/);
  const { errors } = (await response.json()) as { errors: [{ extensions: { code: string } }] };
  assert.equal(errors[0].extensions.code, "GRAPHQL_VALIDATION_FAILED");
});

test("the first format in the accept header is used", async (t) => {
  for (const [asked, type] of [
    ['multipart/mixed; subscriptionSpec="1.0"', "multipart/mixed"],
    ["multipart/mixed;subscriptionSpec=1.0, text/event-stream", "multipart/mixed"],
    ["text/event-stream, multipart/mixed;subscriptionSpec=1.0", "text/event-stream"],
    ["*/*", "text/event-stream"],
  ] as const) {
    const feed = createFeed();
    feed.finish();
    const gateway = await serve(t, { watchPayment: feed.watch });
    const response = await subscribeInParts(gateway, query, { accept: asked });
    assert.equal(response.headers.get("content-type")?.split(";")[0], type, asked);
    await response.text();
  }
});

test("multipart/mixed without subscriptionSpec, or with another version, is answered 406", async (t) => {
  for (const asked of ["multipart/mixed", "multipart/mixed;subscriptionSpec=2.0"]) {
    const gateway = await serve(t, { watchPayment: createFeed().watch });
    const response = await subscribeInParts(gateway, query, { accept: asked });
    assert.equal(response.status, 406, asked);
  }
});
