import type { History } from "./history.ts";

/** Draws a history as a sequence diagram, one message a line. */
export function diagramOf({ lines }: Pick<History, "lines">): string {
  const lanes = lanesOf(lines.flatMap(({ from, to }) => [from, to]));
  const widths = lanes.map((lane) => Math.max(lane.length, 3) + 1);
  const middles = widths.map(
    (width, at) => widths.slice(0, at).reduce((sum, each) => sum + each, 0) + Math.floor(width / 2),
  );
  const width = widths.reduce((sum, each) => sum + each, 0);
  const middleOf = (lane: string) => middles[lanes.indexOf(lane)] ?? 0;
  const head = lanes.map((lane, at) => lane.padEnd(widths[at] as number)).join("");
  const rows = lines.map(({ atMs, from, to, text }) => {
    const row: string[] = Array.from({ length: width }, (_, at) =>
      middles.includes(at) ? "│" : " ",
    );
    const [start, end] = [middleOf(from), middleOf(to)];
    for (let at = Math.min(start, end); at <= Math.max(start, end); at++) row[at] = "─";
    row[end] = end > start ? "▶" : end < start ? "◀" : "●";
    return `${atMs.toFixed(1).padStart(10)}  ${row.join("")} ${text}`;
  });
  return [`${"ms".padStart(10)}  ${head}`, ...rows].join("\n");
}

/** From left to right: watchers, callers, gateways, the store, the service. */
function lanesOf(names: readonly string[]): string[] {
  const order = (name: string) =>
    ["callers", "gateway", "all", "store", "service"].findIndex((each) => name.startsWith(each));
  return [...new Set(names)].toSorted((a, b) => order(a) - order(b) || (a < b ? -1 : 1));
}
