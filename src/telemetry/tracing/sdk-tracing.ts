import {
  type Context,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from "@opentelemetry/api";
import { parseTraceParent, W3CTraceContextPropagator } from "@opentelemetry/core";
import { ProtobufTraceSerializer } from "@opentelemetry/otlp-transformer";
import { defaultResource, resourceFromAttributes } from "@opentelemetry/resources";
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type SpanProcessor,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { Report } from "../../report.ts";
import { renameAttributes } from "./attributes.ts";
import { createOtlpExporter, shutDown } from "./otlp-exporter.ts";
import type { TracingSettings } from "./settings.ts";
import {
  activeSpan,
  type HeaderOf,
  type RunningTracing,
  type Span,
  type StartOptions,
} from "./tracing.ts";

/** Tracing by OpenTelemetry's SDK. Registers nothing globally: several may run in one process. */
export function createSdkTracing(settings: TracingSettings, report: Report): RunningTracing {
  const { parentBased, ratio } = settings.sampler;
  const root = new TraceIdRatioBasedSampler(ratio);
  const provider = new TracerProvider({
    resource: defaultResource().merge(resourceFromAttributes(settings.resource)),
    sampler: parentBased ? new ParentBasedSampler({ root }) : root,
    spanProcessors: [createProcessor(settings, report)],
  });
  const tracer = provider.getTracer("payments-gateway");

  return {
    start(name, { kind, parent, links = [], attributes = {} }) {
      const above = contextOf(parent);
      const options = {
        kind: SpanKind[kind.toUpperCase() as Uppercase<typeof kind>],
        attributes: typeof attributes === "function" ? attributes() : attributes,
        links: links.flatMap(linksOf),
      };
      const sdk = tracer.startSpan(name, options, above);
      const { traceId, spanId, traceFlags } = sdk.spanContext();
      const isSampled = (traceFlags & TraceFlags.SAMPLED) !== 0;
      const span: RecordedSpan = {
        context: trace.setSpan(above, sdk),
        ids: { trace_id: traceId, span_id: spanId },
        traceparent: isSampled ? `00-${traceId}-${spanId}-01` : undefined,
        run: (work) => activeSpan.run(span, work),
        rename: (name, old) =>
          void sdk.updateName(old && settings.oldNames.includes(old.of) ? old.name : name),
        set: (attributes) => void sdk.setAttributes(attributes),
        link: (traceparent) => void sdk.addLinks(linksOf(traceparent)),
        fail: (type) =>
          void sdk.setAttribute("error.type", type).setStatus({ code: SpanStatusCode.ERROR }),
        headers() {
          const headers: string[] = [];
          propagator.inject(span.context, headers, {
            set: (to, ...pair) => void to.push(...pair),
          });
          return headers;
        },
        end: () => sdk.isRecording() && sdk.end(),
      };
      return span;
    },
    shutdown: (timeoutMs) => shutDown(provider, timeoutMs),
  };
}

interface RecordedSpan extends Span {
  readonly context: Context;
}

/** No baggage: it is free text of callers, and would reach the payments service. */
const propagator = new W3CTraceContextPropagator();

function contextOf(parent: StartOptions["parent"]): Context {
  if (parent === "root") return ROOT_CONTEXT;
  if (typeof parent === "function") return propagator.extract(ROOT_CONTEXT, parent, getter);
  const span = parent ?? activeSpan.getStore();
  return (span as RecordedSpan | undefined)?.context ?? ROOT_CONTEXT;
}

const getter = {
  // `tracestate` is free text of other systems: it is neither kept nor passed on.
  get: (header: HeaderOf, name: string) => (name === "tracestate" ? undefined : header(name)),
  keys: () => [],
};

function linksOf(traceparent: string | undefined) {
  const context = traceparent === undefined ? null : parseTraceParent(traceparent);
  return context ? [{ context: { ...context, isRemote: true } }] : [];
}

/**
 * Exports spans in batches. A slow or unreachable collector costs no more than the queue: spans
 * that do not fit in are dropped, and no call waits for an export.
 */
function createProcessor(
  { otlp, batch, oldNames }: TracingSettings,
  report: Report,
): SpanProcessor {
  const exporter = createOtlpExporter(otlp, ProtobufTraceSerializer, "trace", report);
  let waiting = 0;

  class Batches extends BatchSpanProcessor {
    override onEnd(span: ReadableSpan): void {
      if (waiting >= batch.maxQueue) {
        report("telemetrySent", { signal: "trace", outcome: "dropped", count: 1 });
      } else {
        waiting++;
        renameAttributes(span.attributes, oldNames);
        // What is logged of the export has nothing to do with the span that is active now.
        activeSpan.exit(() => super.onEnd(span));
      }
    }
  }

  return new Batches({
    exporter: {
      ...exporter,
      export(spans, done) {
        waiting -= spans.length;
        exporter.export(spans, done);
      },
    },
    scheduledDelayMillis: batch.delayMs,
    exportTimeoutMillis: otlp.timeoutMs,
    maxQueueSize: batch.maxQueue,
    maxExportBatchSize: Math.min(512, batch.maxQueue),
  });
}
