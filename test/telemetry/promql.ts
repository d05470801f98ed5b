import { parser } from "@prometheus-io/lezer-promql";
import type { Scrape } from "./scrape.ts";

/** A PromQL expression, and where it is used. */
export interface Expression {
  readonly where: string;
  readonly text: string;
}

/** What Prometheus adds to every series of a target. */
const targetLabels = ["job", "instance"];
/** Metrics that Prometheus itself adds, with their labels. */
const itsOwn: ReadonlyMap<string, readonly string[]> = new Map([["up", targetLabels]]);

/**
 * Returns the faults of an expression: it cannot be parsed, or it names a metric without samples in
 * the scrape, a label that the metric does not have, or, with `=`, a value that no sample has.
 */
export function faultsOf({ where, text }: Expression, { samples }: Scrape): string[] {
  const faults = new Set<string>();
  const fault = (what: string) => void faults.add(`${where}: ${what}`);
  const labelsOf = (metric: string): ReadonlySet<string> | undefined => {
    const own = itsOwn.get(metric);
    if (own) return new Set(own);
    const found = samples.filter(({ name }) => name === metric);
    if (found.length === 0) return undefined;
    return new Set([...targetLabels, ...found.flatMap(({ labels }) => Object.keys(labels))]);
  };

  const known = new Set<string>();
  const grouping: string[] = [];
  const at = (node: { from: number; to: number }) => text.slice(node.from, node.to);
  parser.parse(text).iterate({
    enter(node) {
      if (node.type.isError) fault(`does not parse near ${JSON.stringify(text.slice(node.from))}`);
      if (node.name === "GroupingLabels") {
        grouping.push(...node.node.getChildren("LabelName").map(at));
      }
      if (node.name !== "VectorSelector") return;
      const metric = node.node.getChild("Identifier");
      if (!metric) return fault("selects without a metric");
      const labels = labelsOf(at(metric));
      if (!labels) return fault(`no metric ${at(metric)}`);
      for (const label of labels) known.add(label);
      for (const matcher of node.node
        .getChild("LabelMatchers")
        ?.getChildren("UnquotedLabelMatcher") ?? []) {
        const label = matcher.getChild("LabelName");
        const value = matcher.getChild("StringLiteral");
        if (!label || !value) continue;
        if (!labels.has(at(label))) fault(`${at(metric)} has no label ${at(label)}`);
        const exact = matcher.getChild("MatchOp")?.getChild("EqlSingle");
        const wanted = at(value).slice(1, -1);
        const isSeen = samples.some((s) => s.name === at(metric) && s.labels[at(label)] === wanted);
        if (exact && !targetLabels.includes(at(label)) && !isSeen) {
          fault(`${at(metric)} has no ${at(label)}="${wanted}"`);
        }
      }
    },
  });
  for (const label of grouping)
    if (!known.has(label)) fault(`groups by ${label}, which is no label`);
  return [...faults];
}
