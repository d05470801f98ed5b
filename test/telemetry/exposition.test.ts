import assert from "node:assert/strict";
import { test } from "node:test";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { clientOf, dataOf } from "../gateway/callers.ts";
import { ofSuite } from "../of-suite.ts";
import { until } from "../until.ts";
import { newTrace, startCollected, tracedBy } from "./tracing/collector.ts";

const gateway = ofSuite(() => startCollected(tracedBy));

/** The Accept header of Prometheus 3. */
const prometheus =
  "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
const openMetrics = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const plain = "text/plain; version=0.0.4; charset=utf-8";

async function scrape(accept: string): Promise<{ type: string; text: string }> {
  const answer = await fetch(`${gateway.adminUrl}/metrics`, { headers: { accept } });
  return { type: answer.headers.get("content-type") ?? "", text: await answer.text() };
}

async function readPayment(sampled: boolean): Promise<string> {
  const { traceId, headers } = newTrace(sampled);
  const { getPayment } = clientOf(PaymentService, gateway);
  await assert.rejects(getPayment({ externalId: "x" }, { headers }), /not_found/);
  return traceId;
}

/** Scrapes until `fits` holds: a call is counted only after its answer is sent. */
const scrapeWith = (fits: (text: string) => boolean) =>
  until(async () => {
    const { text } = await scrape(prometheus);
    return fits(text) && text;
  });

const exemplarOf = (text: string, traceId: string) =>
  text
    .split("\n")
    .find((line) => line.includes(`trace_id="${traceId}"`))
    ?.match(/^(\w+)\{.*\} \d+ # \{trace_id="(\w{32})",span_id="(\w{16})"\} (\S+) (\d{10}\.?\d*)$/);

test("the format is OpenMetrics if the scraper accepts that", async () => {
  for (const [accept, type] of [
    [prometheus, openMetrics],
    ["application/openmetrics-text", openMetrics],
    ["application/openmetrics-text; version=1.0.0; q=0.5, text/plain; q=0.5", openMetrics],
    ["*/*", plain],
    ["text/html,application/xhtml+xml,*/*;q=0.8", plain],
    ["text/plain", plain],
    ["text/plain, application/openmetrics-text;q=0.9", openMetrics],
  ] as const) {
    assert.equal((await scrape(accept)).type, type, accept);
  }
});

test("a bucket names the latest sampled trace, in OpenMetrics only", async () => {
  const traceId = await readPayment(true);
  const text = await scrapeWith((scraped) => scraped.includes(traceId));
  const [, name, , spanId, seconds, at] = exemplarOf(text, traceId) ?? assert.fail(text);
  assert.equal(name, "payments_gateway_rpc_request_duration_seconds_bucket");
  const span = await gateway.collector.span(
    (one) => one.traceId === traceId && one.kind === "server",
  );
  assert.equal(spanId, span.spanId);
  assert.ok(Number(seconds) > 0);
  assert.ok(Math.abs(Number(at) - Date.now() / 1_000) < 3_600, "seconds since the epoch");

  const other = await scrape("text/plain");
  assert.doesNotMatch(other.text, /trace_id/);
  // The names that OpenMetrics changes are unchanged in a later plain-text scrape.
  assert.match(other.text, /^payments_gateway_rpc_requests_total\{/m);
  assert.match(other.text, /^# TYPE payments_gateway_rpc_requests_total counter$/m);
});

test("GraphQL, callbacks and calls to the service have exemplars too", async () => {
  const { traceId, headers } = newTrace();
  await dataOf(gateway, '{ payout(externalId: "nobody") { state } }', { headers });
  const callbacks = `${gateway.publicUrl}/callbacks/default/payments`;
  const refused = await fetch(callbacks, { method: "POST", headers, body: "{}" });
  assert.equal(refused.status, 401);
  for (const duration of ["graphql_operation", "callback", "upstream_request"]) {
    const name = `payments_gateway_${duration}_duration_seconds_bucket`;
    await scrapeWith((text) =>
      text.split("\n").some((line) => line.startsWith(`${name}{`) && line.includes(traceId)),
    );
  }
});

test("a call that is not sampled leaves no exemplar", async () => {
  const calls = (text: string) =>
    Number(/^payments_gateway_rpc_request_duration_seconds_count\{.*\} (\d+)$/m.exec(text)?.[1]);
  const before = calls((await scrape(prometheus)).text) || 0;
  const traceId = await readPayment(false);
  const text = await scrapeWith((scraped) => calls(scraped) > before);
  assert.doesNotMatch(text, new RegExp(traceId));
});
