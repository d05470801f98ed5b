import {
  type Context,
  ROOT_CONTEXT,
  type Span as SdkSpan,
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
import { type Attributes, namedBy, type OldNames } from "./attributes.ts";
import { createOtlpExporter, shutDown } from "./otlp-exporter.ts";
import type { TracingSettings } from "./settings.ts";
import {
  activeSpan,
  type HeaderOf,
  type RunningTracing,
  type Span,
  type SpanIds,
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
  const { oldNames } = settings;
  const named = namedBy(oldNames);
  const ways: Ways = { named, oldNames };

  return {
    start(name, { kind, parent, links = [], attributes = {} }) {
      const context = contextOf(parent);
      const span = tracer.startSpan(
        name,
        {
          kind: kinds[kind],
          attributes: named(typeof attributes === "function" ? attributes() : attributes),
          links: links.flatMap(linksOf),
        },
        context,
      );
      return new RecordedSpan(span, trace.setSpan(context, span), ways);
    },
    shutdown: (timeoutMs) => shutDown(provider, timeoutMs),
  };
}

/** What all spans of one tracing share. */
interface Ways {
  readonly named: (attributes: Attributes) => Attributes;
  readonly oldNames: readonly OldNames[];
}

class RecordedSpan implements Span {
  readonly context: Context;
  readonly ids: SpanIds;
  readonly #span: SdkSpan;
  readonly #ways: Ways;

  constructor(span: SdkSpan, context: Context, ways: Ways) {
    this.#span = span;
    this.#ways = ways;
    this.context = context;
    const { traceId, spanId } = span.spanContext();
    this.ids = { trace_id: traceId, span_id: spanId };
  }

  get traceparent(): string | undefined {
    const { traceId, spanId, traceFlags } = this.#span.spanContext();
    return traceFlags & TraceFlags.SAMPLED ? `00-${traceId}-${spanId}-01` : undefined;
  }

  run<T>(work: () => T): T {
    return activeSpan.run(this, work);
  }

  rename(name: string, old?: { readonly of: OldNames; readonly name: string }): void {
    this.#span.updateName(old && this.#ways.oldNames.includes(old.of) ? old.name : name);
  }

  set(attributes: Attributes): void {
    this.#span.setAttributes(this.#ways.named(attributes));
  }

  link(traceparent: string | undefined): void {
    this.#span.addLinks(linksOf(traceparent));
  }

  fail(type: string): void {
    this.#span.setAttribute("error.type", type);
    this.#span.setStatus({ code: SpanStatusCode.ERROR });
  }

  headers(): readonly string[] {
    const headers: string[] = [];
    propagator.inject(this.context, headers, {
      set: (to, ...pair) => void to.push(...pair),
    });
    return headers;
  }

  end(): void {
    if (this.#span.isRecording()) this.#span.end();
  }
}

const kinds = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  internal: SpanKind.INTERNAL,
} as const;

/** No baggage: it is free text of callers, and would reach the payments service. */
const propagator = new W3CTraceContextPropagator();

function contextOf(parent: StartOptions["parent"]): Context {
  if (parent === "root") return ROOT_CONTEXT;
  if (typeof parent === "function") return propagator.extract(ROOT_CONTEXT, parent, getter);
  const span = parent ?? activeSpan.getStore();
  return span instanceof RecordedSpan ? span.context : ROOT_CONTEXT;
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
function createProcessor({ otlp, batch }: TracingSettings, report: Report): SpanProcessor {
  const exporter = createOtlpExporter(otlp, ProtobufTraceSerializer, "trace", report);
  let waiting = 0;

  class Batches extends BatchSpanProcessor {
    override onEnd(span: ReadableSpan): void {
      if (waiting >= batch.maxQueue) {
        report("telemetrySent", { signal: "trace", outcome: "dropped", count: 1 });
      } else {
        waiting++;
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
