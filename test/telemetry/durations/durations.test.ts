import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { PaymentService } from "../../../src/gen/payments/v1/payment_service_pb.ts";
import { version } from "../../../src/version.ts";
import { clientOf } from "../../gateway/callers.ts";
import { ofSuite } from "../../of-suite.ts";
import { until } from "../../until.ts";
import { scrapeOf } from "../scrape.ts";
import { measuredBy, startCollected } from "../tracing/collector.ts";

let status = 500;
const gateway = ofSuite(() => startCollected(measuredBy, () => status));

// First of all, since the collector does not recover before.
test("failed exports are counted, and a collector that recovers gets the durations", async () => {
  const rounds = async (outcome: string) =>
    (await scrapeOf(gateway)).value("metric_exports_total", { outcome }) ?? 0;
  await (await fetch(`${gateway.publicUrl}/nowhere`)).text();
  await until(async () => (await rounds("failed")) > 0);
  assert.equal(await rounds("exported"), 0);
  status = 200;
  await gateway.collector.duration(
    ({ attributes }) => attributes["http.response.status_code"] === 404,
  );
  await until(async () => (await rounds("exported")) > 0);
});

const boundaries = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];

test("RPC calls are timed under the semantic conventions' names, in Connect and in gRPC", async () => {
  for (const by of ["Connect", "gRPC"] as const) {
    await assert.rejects(
      clientOf(PaymentService, gateway, by).getPayment({ externalId: "nobody" }),
      (error) => ConnectError.from(error).code === Code.NotFound,
    );
  }
  const method = "payments.v1.PaymentService/GetPayment";
  for (const [system, status] of [
    ["connectrpc", "not_found"],
    ["grpc", "NOT_FOUND"],
  ] as const) {
    const point = await gateway.collector.duration(
      ({ name, attributes }) =>
        name === "rpc.server.call.duration" &&
        attributes["rpc.method"] === method &&
        attributes["rpc.system.name"] === system,
    );
    assert.deepEqual(point.attributes, {
      "rpc.system.name": system,
      "rpc.method": method,
      "rpc.status_code": status,
      "rpc.response.status_code": status,
    });
    assert.deepEqual([point.unit, point.count, point.temporality], ["s", 1, "cumulative"]);
    assert.deepEqual(point.bounds, boundaries);
    assert.ok(point.sum > 0 && point.sum < 60, "seconds");
  }
  assert.equal(gateway.collector.resources[0]?.["service.name"], "payments-gateway");
  assert.equal(gateway.collector.resources[0]?.["service.version"], version);
});

test("requests to the public listener are timed by route template and status", async () => {
  const ask = async (path: string, init?: RequestInit) =>
    (await fetch(gateway.publicUrl + path, init)).text();
  const json = { "content-type": "application/json" };
  await ask("/graphql", { method: "POST", headers: json, body: '{"query":"{ __typename }"}' });
  await ask("/callbacks/default/payouts", { method: "POST", body: "{}" });
  await ask("/watch/payments/secret-1?after=nonsense");
  await ask("/secret-2", { method: "PROPFIND" });
  const timed = (method: string, route: string | undefined) =>
    gateway.collector.duration(
      ({ name, attributes }) =>
        name === "http.server.request.duration" &&
        attributes["http.request.method"] === method &&
        attributes["http.route"] === route,
    );
  const common = { "url.scheme": "http", "network.protocol.version": "1.1" };
  for (const [method, route, status] of [
    ["POST", "/graphql", 200],
    ["POST", "/callbacks/{merchant}/payouts", 401],
    ["GET", "/watch/payments/{external_id}", 400],
    ["_OTHER", undefined, 404],
  ] as const) {
    assert.deepEqual((await timed(method, route)).attributes, {
      ...common,
      "http.request.method": method,
      ...(route && { "http.route": route }),
      "http.response.status_code": status,
    });
  }
  assert.doesNotMatch(gateway.collector.raw(), /secret|PROPFIND/);
});

test("recorded durations are sent when the gateway stops", async () => {
  const stopping = await startCollected((collector) => ({
    ...measuredBy(collector),
    OTEL_METRIC_EXPORT_INTERVAL: "600000",
    OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: "delta",
  }));
  const { durations } = stopping.collector;
  await (await fetch(`${stopping.publicUrl}/nowhere`)).text();
  assert.equal(durations.length, 0);
  await stopping.stop();
  assert.deepEqual(
    durations.map(({ count, temporality }) => [count, temporality]),
    [[1, "delta"]],
  );
});
