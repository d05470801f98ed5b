import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { startTestGateway } from "../start.ts";
import { type Expression, faultsOf } from "./promql.ts";
import { readScrape, type Scrape, scrapeOf } from "./scrape.ts";
import { startWorkedGateway, type WorkedGateway } from "./worked-gateway.ts";

const file = (path: string) =>
  readFileSync(new URL(`../../deploy/${path}`, import.meta.url), "utf8");

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: {
    readonly x: number;
    readonly y: number;
    readonly w: number;
    readonly h: number;
  };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

interface Dashboard {
  readonly panels: readonly Panel[];
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly definition?: string }[];
  };
}

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

const dashboard: Dashboard = JSON.parse(file("grafana/payments-gateway.json"));
const { groups }: { groups: readonly { name: string; rules: readonly Rule[] }[] } = parse(
  file("prometheus/alerts.yaml"),
);
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

let worked: WorkedGateway;
let scrape: Scrape;

before(async () => {
  worked = await startWorkedGateway();
  const tls = fileURLToPath(new URL("../fixtures/tls/localhost", import.meta.url));
  const encrypted = await startTestGateway({
    TLS_CERT_FILE: `${tls}.crt`,
    TLS_KEY_FILE: `${tls}.key`,
  });
  const texts = [await worked.scrape(), await scrapeOf(encrypted)].map(({ text }) => text);
  scrape = readScrape(texts.join(""));
  await encrypted.stop();
});
after(() => worked.close());

/** Whether the expression uses Redis metrics, which exist only with Redis. */
const isOfRedis = ({ text }: Expression) => /redis_|rate_limit_shared/.test(text);

test("every expression of the dashboard and of the alerts uses existing metrics", () => {
  assert.ok(expressions.length > 80, `${expressions.length} expressions`);
  const checked = expressions.filter((expression) => worked.redis || !isOfRedis(expression));
  assert.deepEqual(
    checked.flatMap((expression) => faultsOf(expression, scrape)),
    [],
  );
});

test("every metric of the gateway is on the dashboard", () => {
  const shown = expressions.filter(({ where }) => where.startsWith("panel"));
  const forgotten = [...scrape.types.keys()].filter(
    (name) =>
      name.startsWith("payments_gateway_") && !shown.some(({ text }) => text.includes(name)),
  );
  assert.deepEqual(forgotten, []);
});

test("a misspelt metric, label or value and a missing bracket are found", () => {
  const fault = (text: string) => faultsOf({ where: "here", text }, scrape)[0] ?? "";
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
    const misspelt = expr.replaceAll(/(payments_gateway_\w|nodejs_|up\{)/g, "x$1");
    assert.notDeepEqual(faultsOf({ where: alert, text: misspelt }, scrape), []);
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
    const of = scrape.samples.filter((sample) => sample.name === metric);
    assert.ok(of.length > 0 && (label === "instance" || of.every((s) => label in s.labels)), name);
  }
});
