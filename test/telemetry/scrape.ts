import { until } from "../until.ts";

export type Labels = Readonly<Record<string, string>>;
export type Scrape = ReturnType<typeof readScrape>;

interface Sample {
  readonly name: string;
  readonly labels: Labels;
  readonly value: number;
}

const prefix = "payments_gateway_";

export async function scrapeOf({ adminUrl }: { readonly adminUrl: string }): Promise<Scrape> {
  return readScrape(await (await fetch(`${adminUrl}/metrics`)).text());
}

/** Scrapes until `fits` holds. */
export function scrapeUntil(
  gateway: { readonly adminUrl: string },
  fits: (scrape: Scrape) => boolean,
): Promise<Scrape> {
  return until(async () => {
    const scrape = await scrapeOf(gateway);
    return fits(scrape) && scrape;
  }, `the metrics fit ${fits}`);
}

/** One scrape. `has`, `value` and `sum` take names without the prefix `payments_gateway_`. */
export function readScrape(text: string) {
  const samples: Sample[] = [];
  const types = new Map<string, string>();
  const helps = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [, comment, about = "", told = ""] = /^# (TYPE|HELP) (\S+) (.*)$/.exec(line) ?? [];
    if (comment === "TYPE") types.set(about, told);
    if (comment === "HELP") helps.set(about, told);
    const [, name, labels = "", value] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (name === undefined) continue;
    samples.push({ name, labels: readLabels(labels), value: Number(value) });
  }
  const of = (name: string) => samples.filter((sample) => sample.name === prefix + name);
  const fits = (sample: Sample, labels: Labels) =>
    Object.entries(labels).every(([label, value]) => sample.labels[label] === value);
  return {
    text,
    samples,
    /** The type of each metric, by its full name. */
    types,
    helps,
    /** Whether there is a sample of the metric. */
    has: (name: string) => of(name).length > 0,
    /** The one sample with exactly these labels. */
    value: (name: string, labels: Labels) =>
      of(name).find(
        (sample) =>
          fits(sample, labels) && Object.keys(sample.labels).length === Object.keys(labels).length,
      )?.value,
    /** The sum of all samples with at least these labels. */
    sum: (name: string, labels: Labels) =>
      of(name)
        .filter((sample) => fits(sample, labels))
        .reduce((total, { value }) => total + value, 0),
  };
}

function readLabels(text: string): Labels {
  const labels: Record<string, string> = {};
  for (const [, name = "", value = ""] of text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
    labels[name] = value;
  }
  return labels;
}
