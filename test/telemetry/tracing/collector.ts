import { randomBytes } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import { loadSync, type MessageTypeDefinition } from "@grpc/proto-loader";
import { listen } from "../../listen.ts";
import { startTestGateway } from "../../start.ts";

export type Collector = Awaited<ReturnType<typeof startCollector>>;
type Attributes = Record<string, string | number | boolean>;

interface Ids {
  readonly traceId: string;
  readonly spanId: string;
}

interface ExportedSpan extends Ids {
  /** Empty for the root of a trace. */
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: string;
  readonly attributes: Attributes;
  readonly links: readonly Ids[];
  readonly failed: boolean;
}

interface ExportedDuration {
  readonly name: string;
  readonly unit: string;
  readonly temporality: string;
  readonly attributes: Attributes;
  readonly count: number;
  /** In seconds. */
  readonly sum: number;
  readonly bounds: readonly number[];
}

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
      const signal = request.url?.endsWith("/metrics") ? "Metrics" : "Traces";
      for (const { resource, scopes } of messages[`otlp.${signal}`].deserialize(body).all) {
        resources.push(valuesOf(resource?.attributes));
        for (const { spans: told = [], metrics = [] } of scopes) {
          spans.push(...told.map(spanOf));
          durations.push(...metrics.flatMap(pointsOf));
        }
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

// biome-ignore lint/suspicious/noExplicitAny: what is loaded has no types
type Message = any;

const messages = loadSync(join(import.meta.dirname, "otlp.proto"), {
  ...{ longs: Number, enums: String, defaults: true },
}) as Record<`otlp.${"Traces" | "Metrics"}`, MessageTypeDefinition<object, Message>>;

function pointsOf({ name, unit, histogram }: Message): ExportedDuration[] {
  const { temporality, points = [] } = histogram ?? {};
  return points.map(({ attributes, ...point }: Message) => ({
    ...{ name, unit, temporality, ...point, attributes: valuesOf(attributes) },
  }));
}

function spanOf(span: Message): ExportedSpan {
  return {
    ...{ ...span, ...idsOf(span), parentSpanId: span.parentSpanId.toString("hex") },
    attributes: valuesOf(span.attributes),
    links: span.links.map(idsOf),
    failed: span.status?.code === "error",
  };
}

const idsOf = ({ traceId, spanId }: Message): Ids => ({
  traceId: traceId.toString("hex"),
  spanId: spanId.toString("hex"),
});

const valuesOf = (attributes: Message[] = []): Attributes =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value ?? {})[0]]));
