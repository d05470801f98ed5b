import { randomBytes } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { listen } from "../../listen.ts";
import { startTestGateway } from "../../start.ts";

export type Collector = Awaited<ReturnType<typeof startCollector>>;
type ExportedSpan = ReturnType<typeof readSpan>;
type ExportedDuration = ReturnType<typeof readHistogram>[number];

/**
 * An OTLP collector (http/protobuf) on a port of its own.
 * @param answer returns the status of each answer, or undefined to send no answer
 */
export async function startCollector(answer: () => number | undefined = () => 200) {
  const spans: ExportedSpan[] = [];
  const durations: ExportedDuration[] = [];
  const resources: Record<string, unknown>[] = [];
  const bodies: Buffer[] = [];
  const headers: Record<string, unknown>[] = [];
  const came = new EventEmitter().setMaxListeners(0);
  const server = createServer(async (request, response) => {
    // A body that was cut off counts as not received.
    const sent = await buffer(request).catch(() => undefined);
    const status = answer();
    if (sent === undefined || status === undefined) return;
    const body = request.headers["content-encoding"] === "gzip" ? gunzipSync(sent) : sent;
    headers.push({ ...request.headers, url: request.url });
    if (status === 200) {
      bodies.push(body);
      const isMetrics = request.url?.endsWith("/metrics");
      for (const told of all(body, 1)) {
        resources.push(attributesOf(all(all(told, 1)[0] ?? nothing, 1)));
        const scopes = all(told, 2).flatMap((scope) => all(scope, 2));
        if (isMetrics) durations.push(...scopes.flatMap(readHistogram));
        else spans.push(...scopes.map(readSpan));
      }
    }
    response.writeHead(status, { "content-type": "application/x-protobuf" }).end();
    came.emit("told");
  });
  async function found<T>(among: readonly T[], fits: (one: T) => boolean): Promise<T> {
    for (;;) {
      const one = among.find(fits);
      if (one) return one;
      await once(came, "told", { signal: AbortSignal.timeout(20_000) });
    }
  }
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    /** Points of all exports, the latest last. */
    durations,
    /** Resource attributes of all exports. */
    resources,
    headers,
    /** Every byte of every body, as one text. */
    raw: () => Buffer.concat(bodies).toString("latin1"),
    /** Resolves with the first span that fits, which may have arrived already. */
    span: (fits: (span: ExportedSpan) => boolean) => found(spans, fits),
    /** The same for a histogram's point. */
    duration: (fits: (point: ExportedDuration) => boolean) => found(durations, fits),
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** A new trace, and the headers of a caller that has it. */
export function newTrace(isSampled = true) {
  const [traceId, spanId] = [randomBytes(16).toString("hex"), randomBytes(8).toString("hex")];
  const traceparent = `00-${traceId}-${spanId}-0${Number(isSampled)}`;
  return { traceId, spanId, headers: { traceparent } };
}

/** Environment of a gateway that sends its spans to this collector every 50 ms. */
export function tracedBy({ url }: Pick<Collector, "url">): Record<string, string> {
  return { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_BSP_SCHEDULE_DELAY: "50" };
}

/** Environment of a gateway that sends its durations to this collector every 50 ms. */
export function measuredBy({ url }: Pick<Collector, "url">): Record<string, string> {
  return {
    OTEL_METRICS_EXPORTER: "otlp",
    OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `${url}/v1/metrics`,
    OTEL_METRIC_EXPORT_INTERVAL: "50",
  };
}

/** A gateway whose telemetry goes to a collector of its own, which closes when it stops. */
export async function startCollected(
  envOf: (collector: Collector) => Record<string, string>,
  answer?: () => number | undefined,
) {
  const collector = await startCollector(answer);
  const gateway = await startTestGateway(envOf(collector));
  return {
    ...gateway,
    collector,
    async stop() {
      await gateway.stop();
      collector.close();
    },
  };
}

const temporalities = ["other", "delta", "cumulative"] as const;

/** Reads the histogram points of a Metric of opentelemetry/proto/metrics/v1. */
function readHistogram(bytes: Uint8Array) {
  const text = (no: number) => Buffer.from(all(bytes, no)[0] ?? nothing).toString("utf8");
  const [histogram = nothing] = all(bytes, 9);
  const temporality = temporalities[Number(fieldsOf(histogram).get(2)?.[0] ?? 0)] ?? "other";
  return all(histogram, 1).map((point) => {
    const fields = fieldsOf(point, 5);
    const bounds = Buffer.from(all(point, 7)[0] ?? nothing);
    return {
      name: text(1),
      unit: text(3),
      temporality,
      attributes: attributesOf(all(point, 9)),
      count: Number(fields.get(4)?.[0] ?? 0),
      /** In seconds. */
      sum: Number(fields.get(5)?.[0] ?? 0),
      bounds: Array.from({ length: bounds.length / 8 }, (_, at) => bounds.readDoubleLE(at * 8)),
    };
  });
}

const kinds = ["other", "internal", "server", "client"] as const;

function readSpan(bytes: Uint8Array) {
  const fields = fieldsOf(bytes);
  const id = (no: number) => Buffer.from((fields.get(no)?.[0] as Uint8Array) ?? nothing);
  const status = fieldsOf((fields.get(15)?.[0] as Uint8Array) ?? nothing);
  return {
    traceId: id(1).toString("hex"),
    spanId: id(2).toString("hex"),
    /** Empty for the root of a trace. */
    parentSpanId: id(4).toString("hex"),
    name: id(5).toString("utf8"),
    kind: kinds[Number(fields.get(6)?.[0] ?? 0)] ?? "other",
    attributes: attributesOf(all(bytes, 9)),
    links: all(bytes, 13).map((link) => ({
      traceId: Buffer.from(all(link, 1)[0] ?? nothing).toString("hex"),
      spanId: Buffer.from(all(link, 2)[0] ?? nothing).toString("hex"),
    })),
    failed: Number(status.get(3)?.[0] ?? 0) === 2,
  };
}

function attributesOf(pairs: readonly Uint8Array[]): Record<string, string | number | boolean> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const [key] = all(pair, 1);
      const value = fieldsOf(all(pair, 2)[0] ?? nothing);
      const text = value.get(1)?.[0];
      const [whole, float, yes] = [value.get(3)?.[0], value.get(4)?.[0], value.get(2)?.[0]];
      const read =
        text instanceof Uint8Array
          ? Buffer.from(text).toString("utf8")
          : yes !== undefined
            ? Boolean(yes)
            : Number(whole ?? float);
      return [Buffer.from(key ?? nothing).toString("utf8"), read];
    }),
  );
}

const nothing = new Uint8Array();

/** All values of one length-delimited field: messages, texts or bytes. */
function all(bytes: Uint8Array, no: number): Uint8Array[] {
  return (fieldsOf(bytes).get(no) ?? []).filter((value) => value instanceof Uint8Array);
}

/** @param double the number of the 64-bit field that holds a double */
function fieldsOf(bytes: Uint8Array, double = 4): Map<number, (Uint8Array | number)[]> {
  const fields = new Map<number, (Uint8Array | number)[]>();
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [no, type] = reader.tag();
    const values = fields.get(no) ?? [];
    fields.set(no, values);
    if (type === WireType.LengthDelimited) values.push(reader.bytes());
    else if (type === WireType.Varint) values.push(Number(reader.uint64()));
    else if (type === WireType.Bit64)
      values.push(no === double ? reader.double() : Number(reader.fixed64()));
    else reader.skip(type, no);
  }
  return fields;
}
