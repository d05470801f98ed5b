import { type ExportResult, ExportResultCode } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import {
  BatchSpanProcessor,
  ConsoleSpanExporter,
  type ReadableSpan,
  type SpanExporter,
  type SpanProcessor,
} from "@opentelemetry/sdk-trace";
import type { TracingObserver } from "./observer.ts";
import type { TracingSettings } from "./settings.ts";

/**
 * Exports spans in batches. A slow or unreachable collector costs no more than the queue: spans
 * that do not fit in are dropped, and no call waits for an export.
 */
export function createProcessor(
  kind: TracingSettings["exporters"][number],
  { otlp, batch }: TracingSettings,
  { onSpans }: TracingObserver,
): SpanProcessor {
  const exporter = kind === "console" ? new ConsoleSpanExporter() : createOtlpExporter(otlp);
  let waiting = 0;

  class Batches extends BatchSpanProcessor {
    override onEnd(span: ReadableSpan): void {
      if (waiting >= batch.maxQueue) {
        onSpans({ outcome: "dropped", count: 1 });
      } else {
        waiting++;
        super.onEnd(span);
      }
    }
  }

  const counted: SpanExporter = {
    export(spans, done) {
      waiting -= spans.length;
      exporter.export(spans, (result: ExportResult) => {
        const exported = result.code === ExportResultCode.SUCCESS;
        onSpans({
          outcome: exported ? "exported" : "failed",
          count: spans.length,
          error: result.error,
        });
        // Always success: the processor would report a failure on the console.
        done({ code: ExportResultCode.SUCCESS });
      });
    },
    shutdown: () => exporter.shutdown(),
  };

  return new Batches({
    exporter: counted,
    scheduledDelayMillis: batch.delayMs,
    exportTimeoutMillis: batch.timeoutMs,
    maxQueueSize: batch.maxQueue,
    maxExportBatchSize: Math.min(batch.maxBatch, batch.maxQueue),
  });
}

/** Most batches under way at once, so that a collector's answers cannot fill the memory. */
const maxExports = 4;

type OtlpOptions = ConstructorParameters<typeof OTLPTraceExporter>[0];

/** Every option is set, so that the exporter reads none from the environment. */
function createOtlpExporter(otlp: TracingSettings["otlp"]): SpanExporter {
  const { url, headers, timeoutMs, compression, tls } = otlp;
  return new OTLPTraceExporter({
    url,
    headers: { ...headers },
    timeoutMillis: timeoutMs,
    // The exporter reads up to 4 MiB of each answer.
    concurrencyLimit: maxExports,
    compression,
    httpAgentOptions: { keepAlive: true, ...tls },
  } as OtlpOptions);
}
