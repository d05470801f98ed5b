import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { parse } from "yaml";
import { EventService } from "../../src/gen/payments/v1/event_service_pb.ts";
import { services } from "../../src/rpc/services/routes.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { version } from "../../src/version.ts";
import { clientOf, graphql, sendCallback } from "../gateway/callers.ts";
import { ofSuite } from "../of-suite.ts";
import { withoutRedis } from "../redis/server.ts";
import { type Expression, faultsOf } from "./promql.ts";
import { readScrape, type Scrape, scrapeOf, scrapeUntil } from "./scrape.ts";
import { startWorkedGateway } from "./worked-gateway.ts";

const worked = ofSuite(startWorkedGateway);
const payments = "payments.v1.PaymentService";
const account = "default";

test("RPC calls and GraphQL operations are counted by method or field and by outcome", async () => {
  const { value, sum } = await scrapeOf(worked);
  const rpc = (method: string, code: string) =>
    value("rpc_requests_total", { service: payments, method, code });
  assert.equal(rpc("CreatePayment", "UNKNOWN"), 1);
  assert.equal(rpc("CreatePayment", "RESOURCE_EXHAUSTED"), 1);
  assert.equal(rpc("GetPayment", "NOT_FOUND"), 1);
  assert.equal(rpc("WatchPayment", "OK"), 1);
  const timed = (labels: Record<string, string>) =>
    sum("rpc_request_duration_seconds_count", labels);
  assert.equal(timed({ method: "GetPayment", code: "NOT_FOUND" }), 1);
  assert.equal(timed({ method: "WatchPayment" }), 0, "a stream has no latency");

  const operations = (type: string, field: string, transport: string, code: string) =>
    value("graphql_operations_total", { type, field, transport, code });
  assert.equal(operations("query", "payment", "http", "OK"), 1);
  assert.equal(operations("invalid", "none", "http", "GRAPHQL_VALIDATION_FAILED"), 1);
  assert.equal(operations("subscription", "paymentUpdated", "sse", "OK"), 1);
  assert.equal(sum("graphql_operation_duration_seconds_count", { type: "query" }), 2);
  assert.equal(sum("graphql_operation_duration_seconds_count", { type: "subscription" }), 0);
  assert.equal(sum("internal_errors_total", {}), 0);
});

test("the payments service's answers, tokens and the waits for tokens are counted", async () => {
  const tokens = ({ sum }: Scrape) => sum("rate_limit_wait_seconds_count", { account });
  // Each request takes one token; a look-up may be under way, and has only its token.
  const scrape = await scrapeUntil(
    worked,
    (now) => tokens(now) === now.sum("upstream_requests_total", { account }),
  );
  const { value, sum } = scrape;
  const endpoint = "POST /api/payments/v1/new";
  const calls = (outcome: string) => sum("upstream_requests_total", { account, endpoint, outcome });
  assert.ok(calls("200") >= 1);
  assert.equal(calls("429"), 1);
  assert.equal(calls("UNKNOWN"), 1);
  assert.ok(sum("upstream_request_duration_seconds_count", { endpoint }) >= 3);
  assert.equal(value("upstream_breaker_state", { account, calls: "money" }), 0);
  assert.equal(value("upstream_credentials_refused", { account }), 0);
  assert.equal(value("rate_limit_upstream_rejections_total", { account }), 1);
  const takenBy = (caller_kind: string) =>
    sum("rate_limit_wait_seconds_count", { account, caller_kind });
  assert.ok(takenBy("service") > 0);
  assert.equal(tokens(scrape), takenBy("service") + takenBy("gateway"), "there are no customers");
});

test("events, callbacks, conflicts and dead letters are counted", async () => {
  const { value, sum } = await scrapeOf(worked);
  const callbacks = (verdict: string) =>
    value("callbacks_total", { account, resource: "payments", verdict });
  assert.equal(callbacks("bad_signature"), 1);
  assert.equal(callbacks("dead_letter"), 1);
  assert.equal(callbacks("unavailable"), 0);
  const stored = callbacks("stored") ?? 0;
  const kind = "payment";
  assert.equal(
    value("events_appended_total", { account, kind, source: "callback", outcome: "stored" }),
    stored,
  );
  assert.ok(sum("events_appended_total", { source: "response", outcome: "stored" }) >= 2);
  assert.equal(
    sum("callback_duration_seconds_count", {}),
    sum("callbacks_total", {}),
    "each has its time",
  );
  assert.equal(value("event_conflicts_total", { account }), 1);
  assert.equal(value("dead_letters", { account }), 1);
  assert.equal(
    value("upstream_field_faults_total", {
      endpoint: "callback payments",
      field: "is_success",
      kind: "unset",
    }),
    1,
  );
  assert.equal(
    value("upstream_unrecognized_values_total", { field: "operation" }),
    2,
    "a field's name is the only label: what the service says may be anything",
  );
  assert.equal(sum("upstream_unrecognized_values_total", {}), 2);
  assert.equal(sum("reconciliations_settled_total", { account }), 1);
  assert.equal(value("reconciliations_given_up_total", { account }), 0);
});

test("open streams, their events and the reasons of their ends are counted", async () => {
  const before = await scrapeOf(worked);
  assert.equal(before.sum("watchers", {}), 0);
  assert.ok(before.sum("watch_events_delivered_total", { transport: "grpc" }) >= 1);
  assert.ok(before.sum("watch_events_delivered_total", { transport: "sse" }) >= 1);
  const ended = (transport: string, reason: string) => ({ transport, reason });
  assert.equal(before.value("watches_ended_total", ended("grpc", "completed")), 1);

  const gone = new AbortController();
  const events = clientOf(EventService, worked)
    .streamEvents({}, { signal: gone.signal })
    [Symbol.asyncIterator]();
  const next = events.next().catch(() => undefined);
  await scrapeUntil(worked, ({ value }) => value("watchers", { transport: "grpc" }) === 1);
  gone.abort();
  await next;
  const { sum } = await scrapeUntil(worked, ({ sum }) => sum("watchers", {}) === 0);
  const reasons = sum("watches_ended_total", { transport: "grpc" });
  assert.equal(reasons, 2);
});

test("names that callers invent add no series", async () => {
  const junk = async (nth: number) => {
    const name = `junk${nth}`;
    await graphql(worked, `query ${name} { ${name} }`, { headers: { "x-request-id": name } });
    await graphql(worked, `query ${name} { ${name}: rateLimit { limit } }`);
    const headers = { "x-merchant-account": name };
    await graphql(worked, `{ rateLimit { limit } }`, { headers });
    const { publicUrl, rpcUrl, adminUrl } = worked;
    const post = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };
    for (const url of [
      `${publicUrl}/callbacks/${name}/payments`,
      `${publicUrl}/callbacks/default/${name}`,
      `${publicUrl}/${name}`,
      `${rpcUrl}/payments.v1.PaymentService/${name}`,
      `${rpcUrl}/${name}/GetPayment`,
      `${adminUrl}/${name}`,
    ]) {
      await (await fetch(url, post)).arrayBuffer();
    }
    await sendCallback(worked, {
      external_id: name,
      [name]: 1,
      operation: name,
      details: { payment_id: name, status: name, [name]: name },
    });
  };
  const series = async () =>
    (await scrapeOf(worked)).samples
      .filter(({ name }) => name.startsWith("payments_gateway_"))
      .map(({ name, labels }) => `${name} ${JSON.stringify(labels)}`)
      .sort();
  await junk(0);
  const before = await series();
  for (let nth = 1; nth <= 10; nth++) await junk(nth);
  const after = await series();
  assert.deepEqual(
    after.filter((one) => !before.includes(one)),
    [],
  );
  assert.doesNotMatch(after.join("\n"), /junk/);
  const nobodys = { account: "", resource: "", verdict: "not_found" };
  assert.equal((await scrapeOf(worked)).value("callbacks_total", nobodys), 22);
});

test("metric names follow Prometheus: base units, _total for counters, a help text for each", async () => {
  const { types, helps, samples } = await scrapeOf(worked);
  assert.ok(types.size > 60, `${types.size} metrics`);
  for (const [name, type] of types) {
    assert.ok((helps.get(name)?.length ?? 0) > 5, `${name} has no help`);
    assert.equal(name.endsWith("_total"), type === "counter", `${name} is a ${type}`);
    assert.doesNotMatch(name, /_(ms|millis|milliseconds|minutes|hours|kb|mb|percent)(_|$)/);
    if (type === "histogram") assert.match(name, /_(seconds|bytes)$/);
  }
  const build = samples.find(({ name }) => name === "payments_gateway_build_info");
  assert.deepEqual(build?.labels, { version, node_version: process.versions.node });
  for (const name of ["nodejs_eventloop_lag_p99_seconds", "process_resident_memory_bytes"]) {
    assert.ok(types.has(name));
  }
});

test("every metric of the gateway is on the page of metrics, with its type and help", async () => {
  const page = await readFile("docs/metrics.md", "utf8");
  const { types, helps } = await scrapeOf(worked);
  const missing = [...types]
    .filter(([name]) => name.startsWith("payments_gateway_"))
    .filter(([name, type]) => !page.includes(`| \`${name}\` | ${type} | ${helps.get(name)} |`));
  assert.deepEqual(missing, []);
});

const file = (path: string) =>
  readFileSync(new URL(`../../deploy/${path}`, import.meta.url), "utf8");

interface Panel {
  id: number;
  title: string;
  gridPos: Record<"x" | "y" | "w" | "h", number>;
  targets?: { expr: string; legendFormat: string }[];
}

interface Dashboard {
  panels: Panel[];
  templating: { list: { name: string; definition?: string }[] };
}

interface Rule {
  alert: string;
  expr: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
}

const dashboard: Dashboard = JSON.parse(file("grafana/payments-gateway.json"));
const { groups }: { groups: { rules: Rule[] }[] } = parse(file("prometheus/alerts.yaml"));
const rules = groups.flatMap((group) => group.rules);

const expressions: Expression[] = [
  ...dashboard.panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({ where: `panel ${title}`, text: filledIn(expr) })),
  ),
  ...rules.map(({ alert, expr }) => ({ where: `alert ${alert}`, text: expr })),
];

/** The expression with values in place of Grafana's variables. */
function filledIn(expression: string): string {
  return expression.replaceAll("$__rate_interval", "1m").replace(/\$(instance|account)/g, ".*");
}

/** Whether the expression uses Redis metrics, which exist only with Redis. */
const isOfRedis = ({ text }: Expression) => /redis_|rate_limit_shared/.test(text);

test("every expression of the dashboard and of the alerts uses existing metrics", () => {
  assert.ok(expressions.length > 80, `${expressions.length} expressions`);
  const checked = expressions.filter((expression) => worked.redis || !isOfRedis(expression));
  assert.deepEqual(
    checked.flatMap((expression) => faultsOf(expression, worked.scrape)),
    [],
  );
});

test("every metric of the gateway is on the dashboard", () => {
  const shown = expressions.filter(({ where }) => where.startsWith("panel"));
  const forgotten = [...worked.scrape.types.keys()].filter(
    (name) =>
      name.startsWith("payments_gateway_") && !shown.some(({ text }) => text.includes(name)),
  );
  assert.deepEqual(forgotten, []);
});

test("a misspelt metric, label or value and a missing bracket are found", () => {
  const fault = (text: string) => faultsOf({ where: "here", text }, worked.scrape)[0] ?? "";
  const prefix = "payments_gateway_";
  assert.equal(fault(`rate(${prefix}callbacks_total{verdict="stored"}[5m])`), "");
  assert.match(fault(`rate(${prefix}callback_total[5m])`), /no metric .*callback_total/);
  assert.match(fault(`${prefix}callbacks_total{verdct="stored"}`), /no label verdct/);
  assert.match(fault(`${prefix}callbacks_total{verdct=~"stored"}`), /no label verdct/);
  assert.match(fault(`${prefix}callbacks_total{verdict="stord"}`), /no verdict="stord"/);
  assert.match(fault(`sum by (acount) (${prefix}callbacks_total)`), /groups by acount/);
  assert.match(fault(`rate(${prefix}callbacks_total[5m]`), /does not parse/);
  assert.match(fault(`rate(${prefix}callbacks_total[$interval])`), /does not parse/);
  for (const { expr, alert } of rules) {
    const misspelt = expr.replaceAll(/(payments_gateway_\w|nodejs_|process_|up\{)/g, "x$1");
    assert.notDeepEqual(faultsOf({ where: alert, text: misspelt }, worked.scrape), []);
  }
});

test("every alert has a severity, a summary, a description and a runbook", () => {
  const names = rules.map(({ alert }) => alert);
  assert.equal(new Set(names).size, names.length);
  for (const { alert, labels, annotations, expr } of rules) {
    assert.match(labels.severity ?? "", /^(critical|warning|info)$/, alert);
    for (const part of ["summary", "description", "runbook"]) {
      assert.ok((annotations[part]?.length ?? 0) > 10, `${alert} has no ${part}`);
    }
    // The expression must keep each label that the description uses.
    for (const [, label = ""] of (annotations.description ?? "").matchAll(/\$labels\.(\w+)/g)) {
      const by = /by \(([^)]*)\)/.exec(expr)?.[1]?.split(/,\s*/);
      assert.ok(by ? by.includes(label) : label === "instance", `${alert} has no label ${label}`);
    }
    for (const [, other = ""] of (annotations.runbook ?? "").matchAll(/[Aa]s for (\w+)/g)) {
      assert.ok(names.includes(other), `${alert}: no alert ${other}`);
    }
    for (const [, record] of (annotations.runbook ?? "").matchAll(/log record "([^"]+)"/g)) {
      assert.match(sources, new RegExp(record ?? ""), `${alert}: nothing logs ${record}`);
    }
  }
});

const directory = new URL("../../src/telemetry/", import.meta.url);
const sources = readdirSync(directory)
  .filter((name) => name.endsWith(".ts"))
  .map((name) => readFileSync(new URL(name, directory), "utf8"))
  .join("\n");

test("an alert on a first increase sees it, also of a series that begins with it", async () => {
  // `increase` of a series that was not there before is 0.
  const { metrics } = await createTelemetry(createLogger("silent"), [account]);
  const { samples } = readScrape(await metrics.registry.metrics());
  const blind = rules.filter(({ expr }) =>
    [...expr.matchAll(/(?:increase|rate)\((\w+)[^)]*\)\) > 0(?![.\d])/g)].some(
      ([, counter = ""]) =>
        !samples.some(({ name }) => name === counter) &&
        !expr.includes(`(${counter} unless ${counter} offset 1h) > 0`),
    ),
  );
  assert.deepEqual(
    blind.map(({ alert }) => alert),
    [],
  );
});

test("the ratios of errors count no streams, which a restart ends with UNAVAILABLE", () => {
  const ratios = expressions.filter(({ text }) => /code=~[^/]*\/ sum/s.test(text));
  assert.equal(ratios.length, 4);
  const { sum } = worked.scrape;
  for (const { where, text } of ratios) {
    const counted = text.match(/payments_gateway_\w+/g) ?? [];
    for (const name of counted.map((one) => one.slice("payments_gateway_".length))) {
      assert.ok(sum(name, {}) > 0, where);
      assert.equal(sum(name, { method: "WatchPayment" }), 0, where);
      assert.equal(sum(name, { type: "subscription" }), 0, where);
    }
  }
  // The control: others count them.
  assert.equal(sum("rpc_requests_total", { method: "WatchPayment" }), 1);
});

test("the latency of calls that may wait for a customer raises no alert", () => {
  const { expr = "" } = rules.find(({ alert }) => alert === "LatencyHigh") ?? {};
  const waiting = services
    .flatMap(({ methods }) => methods)
    .filter(({ input }) => input.fields.some(({ name }) => name === "wait_until"));
  const left = /method!~"([^"]*)"/.exec(expr)?.[1]?.split("|");
  assert.deepEqual(left?.sort(), waiting.map(({ name }) => name).sort());
});

test("dashboard panels do not overlap, and legends use labels that their query keeps", () => {
  const { panels, templating } = dashboard;
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  for (const [nth, { gridPos: a, title }] of panels.entries()) {
    assert.ok(a.x + a.w <= 24, title);
    for (const { gridPos: b, title: other } of panels.slice(nth + 1)) {
      const apart = a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
      assert.ok(apart, `${title} and ${other} overlap`);
    }
  }
  for (const { title, targets = [] } of panels) {
    for (const { expr, legendFormat } of targets) {
      for (const [, label = ""] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) {
        const by = /by \(([^)]*)\)/.exec(expr)?.[1]?.split(/,\s*/) ?? ["instance"];
        assert.ok(by.includes(label), `${title}: ${legendFormat}`);
      }
    }
  }
  for (const { name, definition } of templating.list) {
    const [, metric, label = ""] = /^label_values\((\w+), (\w+)\)$/.exec(definition ?? "") ?? [];
    if (metric === undefined) continue;
    assert.equal(name, label);
    const of = worked.scrape.samples.filter((sample) => sample.name === metric);
    assert.ok(of.length > 0 && (label === "instance" || of.every((s) => label in s.labels)), name);
  }
});

test("Redis commands are timed, and the metrics show when Redis is away", async (t) => {
  if (!worked.redis) return t.skip(withoutRedis || undefined);
  const { value, sum } = await scrapeOf(worked);
  assert.equal(value("redis_up", {}), 1);
  assert.ok(sum("redis_command_duration_seconds_count", { command: "evalsha" }) > 10);
  assert.equal(value("rate_limit_shared", { account }), 1);
  await worked.redis.stop();
  const away = await scrapeUntil(
    worked,
    ({ value }) => value("redis_up", {}) === 0 && value("rate_limit_shared", { account }) === 0,
  );
  assert.ok(away.sum("redis_connection_errors_total", {}) > 0);
  assert.equal(away.has("dead_letters"), false, "what is not known is not told");
});
